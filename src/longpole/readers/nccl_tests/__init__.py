"""What nccl-tests and rccl-tests write: tables on standard output, and JSON files."""
