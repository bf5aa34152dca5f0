// What Temporal's server needs of its worker controller to build without it.
module go.temporal.io/auto-scaled-workers

go 1.26
