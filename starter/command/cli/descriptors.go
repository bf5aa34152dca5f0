package cli

// FirstFD is the first descriptor that a program can inherit in addition to its streams.
const FirstFD = 3
