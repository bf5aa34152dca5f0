package cli

// LocalTime is the layout of times in messages. They are in the local zone, which is named.
const LocalTime = "2006-01-02 15:04:05 MST"
