package evidence

// Kinds of errors.
const (
	kindPython    = "python"
	kindCPP       = "c++"
	kindSanitizer = "sanitizer"
	kindLibc      = "libc"
	kindGo        = "go"
	kindJava      = "java"
	kindRust      = "rust"
	kindFortran   = "fortran"
	kindCUDA      = "cuda"
	kindNCCL      = "nccl"
	kindMPI       = "mpi"
	kindKilled    = "killed"
	kindMemory    = "out-of-memory"
	kindPeer      = "peer"
	kindOther     = "error"
)

// rule describes the start of an error.
type rule struct {
	kind string
	text string
	// survived reports whether programs usually continue after the error.
	survived bool
	// then reads the lines after the first. It is nil if the error is a single line.
	then block
}

// prefixes are line prefixes that start an error.
var prefixes = []rule{
	{kind: kindPython, text: "Traceback (most recent call last):", then: pythonBlock},
	{kind: kindPython, text: "Exception Group Traceback (most recent call last):", then: pythonBlock},
	{kind: kindPython, text: "Fatal Python error: "},
	{kind: kindCPP, text: "terminate called ", then: cppBlock},
	{kind: kindCPP, text: "libc++abi: terminating"},
	{kind: kindSanitizer, text: "AddressSanitizer:DEADLYSIGNAL"},
	{kind: kindSanitizer, text: "ThreadSanitizer:DEADLYSIGNAL"},
	{kind: kindSanitizer, text: "UndefinedBehaviorSanitizer:DEADLYSIGNAL"},
	{kind: kindSanitizer, text: "WARNING: ThreadSanitizer: ", survived: true, then: sanitizerBlock},
	{kind: kindLibc, text: "*** stack smashing detected ***"},
	{kind: kindLibc, text: "*** buffer overflow detected ***"},
	{kind: kindLibc, text: "*** Error in `"},
	{kind: kindLibc, text: "double free or corruption"},
	{kind: kindLibc, text: "corrupted size vs. prev_size"},
	{kind: kindLibc, text: "corrupted double-linked list"},
	{kind: kindLibc, text: "free(): "},
	{kind: kindLibc, text: "malloc(): "},
	{kind: kindLibc, text: "realloc(): "},
	{kind: kindLibc, text: "munmap_chunk(): "},
	{kind: kindLibc, text: "malloc_consolidate(): "},
	{kind: kindLibc, text: "Segmentation fault"},
	{kind: kindLibc, text: "Bus error"},
	{kind: kindLibc, text: "Illegal instruction"},
	{kind: kindLibc, text: "Floating point exception"},
	{kind: kindGo, text: "panic: ", then: goBlock},
	{kind: kindGo, text: "fatal error: ", then: goBlock},
	{kind: kindGo, text: "runtime: out of memory", then: goBlock},
	{kind: kindJava, text: "Exception in thread ", then: javaBlock},
	{kind: kindJava, text: "# A fatal error has been detected by the Java Runtime Environment:"},
	{kind: kindMemory, text: "java.lang.OutOfMemoryError"},
	{kind: kindRust, text: "thread '", then: rustBlock},
	{kind: kindFortran, text: "At line ", then: fortranBlock},
	{kind: kindFortran, text: "Fortran runtime error: "},
	{kind: kindFortran, text: "forrtl: severe"},
	{kind: kindFortran, text: "ERROR STOP"},
	{kind: kindFortran, text: "Program received signal SIG"},
	{kind: kindMPI, text: "Fatal error in PMPI_"},
	{kind: kindMPI, text: "Fatal error in MPI_"},
	{kind: kindMPI, text: "Fatal error in internal_"},
	{kind: kindMPI, text: "application called MPI_Abort("},
	{kind: kindMPI, text: "MPI_ABORT was invoked on rank"},
	{kind: kindMPI, text: "*** An error occurred in "},
	{kind: kindKilled, text: "Killed"},
	{kind: kindMemory, text: "Out of memory: Kill"},
	{kind: kindMemory, text: "Out Of Memory"},
	{kind: kindMemory, text: "oom_kill"},
	{kind: kindOther, text: "ERROR: LoadError: "},
	{kind: kindOther, text: "Uncaught exception"},
	{kind: kindOther, text: "Unhandled exception"},
}

// insides match errors by a string within their first line.
var insides = []rule{
	{kind: kindSanitizer, text: "ERROR: AddressSanitizer: ", then: sanitizerBlock},
	{kind: kindSanitizer, text: "ERROR: LeakSanitizer: ", survived: true, then: sanitizerBlock},
	{kind: kindSanitizer, text: "ERROR: MemorySanitizer: ", then: sanitizerBlock},
	{kind: kindSanitizer, text: "WARNING: MemorySanitizer: ", then: sanitizerBlock},
	{kind: kindSanitizer, text: ": runtime error: ", survived: true},
	{kind: kindLibc, text: ": Assertion "},
	{kind: kindLibc, text: ": Assertion failed"},
	{kind: kindCUDA, text: "CUDA error"},
	{kind: kindCUDA, text: "CUDA failure"},
	{kind: kindCUDA, text: "Cuda failure"},
	{kind: kindCUDA, text: "HIP error"},
	{kind: kindMemory, text: "CUDA out of memory"},
	{kind: kindNCCL, text: "NCCL WARN ", survived: true},
	{kind: kindNCCL, text: "NCCL error"},
	{kind: kindNCCL, text: "Watchdog caught collective operation timeout"},
	{kind: kindMPI, text: "application called MPI_Abort("},
	{kind: kindMPI, text: "*** An error occurred in MPI_"},
	{kind: kindMPI, text: "MPI_ERRORS_ARE_FATAL"},
}

// stems are parts of the words in insides and lostPeer. Most lines do not contain any of them, and
// are not examined further.
var stems = []string{"rror", "WARN", "Sanitizer", "ssertion", "peer", "onnect", "ipe", "ocket", "imed out", "imeout", "emote", "CUDA", "EOF", "MPI_", "NAVAILABLE"}

// lostPeer lists lower-case phrases in errors that another process's exit causes.
var lostPeer = []string{
	"closed by peer", "closed by remote peer", "reset by peer", "reset by remote", "broken pipe", "brokenpipeerror",
	"connectionreseterror", "connectionabortederror", "connectionrefusederror", "connection refused", "connection aborted",
	"connection closed", "connection lost", "lost connection", "peer closed", "peer disconnected", "remote peer", "remote end closed",
	"socket closed", "socket is closed", "socketexception", "use of closed network connection", "transport endpoint is not connected",
	"unexpected eof", "econnreset", "epipe", "econnrefused", "no route to host",
	"ncclremoteerror", "remote process exited", "remote error", "nccl communicator was aborted",
	"collective operation timeout", "timed out in collective", "timed out waiting", "operations have failed or timed out",
	"socket timeout", "socket has timed out", "connection timed out", "connection was likely closed", "got 0 bytes",
	"distnetworkerror", "diststoreerror", "unavailable:", "brokenbarriererror", "incompletereaderror",
	"mpi_err_proc_failed", "communication error with rank", "process failed", "connection to rank", "actordiederror", "workercrashederror",
}

// loggedWords are words in the line before a traceback which show that the program logged the
// error, and so probably survived it.
var loggedWords = []string{"ERROR", "WARN", "CRITICAL", "Exception ignored", "exception ignored", "[error", "[warn", "retry", "Retry"}
