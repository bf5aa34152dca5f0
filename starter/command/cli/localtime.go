package cli

// LocalTime is how a time is shown to people: in their zone, which is named.
const LocalTime = "2006-01-02 15:04:05 MST"
