"""Where the threads of a process stood: py-spy's dumps, and faulthandler's."""
