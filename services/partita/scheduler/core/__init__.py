"""The pure core of the scheduler: `machine.SchedulerCore` and the values around it."""
