"""What the documented extensions ask programs to do, a module for each.

`advice` reports what they recommend. Their types and rules stand in
`attributes.documented_extensions`, and hold for every event.
"""
