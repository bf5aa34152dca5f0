import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';

const address = process.env.TEMPORAL_ADDRESS;
const [command, ...args] = process.argv.slice(2); // the command of the run
const spec = { command: [command, ...args], tasks: [{ type: 'worker', count: 2 }] };

const worker = await Worker.create({
  connection: await NativeConnection.connect({ address }),
  taskQueue: 'example',
  workflowsPath: fileURLToPath(new URL('workflows.ts', import.meta.url)),
});
const client = new Client({ connection: await Connection.connect({ address }) });
await worker.runUntil(async () => {
  for (const workflow of ['child', 'operation']) {
    const result = await client.workflow.execute(workflow, {
      taskQueue: 'example',
      workflowId: `example-${workflow}-${process.pid}`,
      args: [spec],
    });
    console.log(`${workflow}: ${result.verdict}, exit code ${result.exit_code}, ${result.tasks.length} tasks`);
  }
});
