"""`capacity`: the fewest nodes that would have kept recorded days cool, by placement rule."""
