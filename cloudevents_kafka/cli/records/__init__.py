"""Records and events as the commands read and write them: JSON lines, text, filters."""
