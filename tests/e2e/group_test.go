package e2e

import ()

// told is a script that writes the variables of the process's generation.
const told = `echo "$TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS $CLUSTERRUN_GENERATION $MASTER_PORT $(basename $(dirname $CLUSTERRUN_LOG_DIR))" > $DIR/told-$RANK-$CLUSTERRUN_GENERATION; `
