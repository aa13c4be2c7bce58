"""The durable record of trials and foreign scores, and its ways in and out."""
