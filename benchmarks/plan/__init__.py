"""What a plan says, beside what was measured, and what planning takes."""
