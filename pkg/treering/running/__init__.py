"""What launches and runs schedules over MPI (layer 3)."""
