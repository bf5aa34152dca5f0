import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';

// What `eval "$(clusterrun server env)"` sets.
const env = process.env;
const connection = { address: env.TEMPORAL_ADDRESS };
if (env.TEMPORAL_TLS_CLIENT_CERT_PATH) {
  connection.tls = {
    serverRootCACertificate: readFileSync(env.TEMPORAL_TLS_SERVER_CA_CERT_PATH),
    clientCertPair: { crt: readFileSync(env.TEMPORAL_TLS_CLIENT_CERT_PATH), key: readFileSync(env.TEMPORAL_TLS_CLIENT_KEY_PATH) },
  };
}
const [command, ...args] = process.argv.slice(2); // the command of the run
const spec = { command: [command, ...args], tasks: [{ type: 'worker', count: 2 }] };

const worker = await Worker.create({
  connection: await NativeConnection.connect(connection),
  taskQueue: 'example',
  workflowsPath: fileURLToPath(new URL('workflows.ts', import.meta.url)),
});
const client = new Client({ connection: await Connection.connect(connection) });
await worker.runUntil(async () => {
  const result = await client.workflow.execute('child', {
    taskQueue: 'example',
    workflowId: `example-${process.pid}`,
    args: [spec],
  });
  console.log(`${result.verdict}, exit code ${result.exit_code}, ${result.tasks.length} tasks`);
});
