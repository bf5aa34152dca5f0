package cli

// LocalTime is the layout of times in messages, which name the local zone.
const LocalTime = "2006-01-02 15:04:05 MST"
