"""What all nodes share: lifecycle, messages, names, waiting."""
