import * as wf from '@temporalio/workflow';

// `clusterrun validate --schema` prints the whole schema of a spec, and `clusterrun help
// json-result` describes a result.
export type Spec = { command: string[]; dir?: string; tasks: { type: string; count?: number }[] };
export type Result = { verdict: string; exit_code: number; message?: string; tasks: { name: string }[] };

// A run that did not succeed has its result in the details of one of the causes.
function resultOf(error: unknown): Result {
  for (let e: any = error; e; e = e.cause) {
    if (e.details?.[0]?.verdict) return e.details[0];
  }
  throw error;
}

export async function child(spec: Spec): Promise<Result> {
  const run = wf.executeChild('ClusterRun', {
    taskQueue: 'clusterrun',
    args: [spec],
    // If this workflow is cancelled or closes, the tasks are stopped as by `clusterrun stop`.
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    parentClosePolicy: 'REQUEST_CANCEL',
  });
  return run.catch(resultOf);
}
