"""Reading plain records inside Spark, without Python."""
