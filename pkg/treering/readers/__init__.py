"""What reads schedules without MPI (layer 2)."""
