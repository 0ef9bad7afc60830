"""Tests of the pipeline. As a package, so that their Spark ends before other tests start one."""
