import { spawn } from 'node:child_process';
import { run } from '../run.js';

/** A listener in a network namespace of its own: a host that is neither a Pod nor the node. */
export interface Outside {
  readonly address: string;
  readonly port: number;
  readonly close: () => Promise<void>;
}

/** Needs access to the node. The address is routed from the node, as a cloud's metadata service is. */
export async function outsideListener(name: string, address: string, port: number): Promise<Outside> {
  // The node lets Pods reach nothing but interfaces of this prefix and its own.
  const [hostEnd, farEnd] = [`veth-${name}`.slice(0, 15), `${name}-f`];
  const ip = (...args: string[]) => run('ip', args);
  const remove = async () => {
    await ip('link', 'del', hostEnd).catch(() => undefined);
    await ip('netns', 'del', name).catch(() => undefined);
  };
  await remove();
  await ip('netns', 'add', name);
  await ip('link', 'add', hostEnd, 'type', 'veth', 'peer', 'name', farEnd, 'netns', name);
  await ip('addr', 'add', '198.18.1.1/32', 'dev', hostEnd);
  await ip('link', 'set', hostEnd, 'up');
  await ip('route', 'add', `${address}/32`, 'dev', hostEnd);
  const inside = (...args: string[]) => ip('-n', name, ...args);
  await inside('link', 'set', 'lo', 'up');
  await inside('addr', 'add', `${address}/32`, 'dev', farEnd);
  await inside('link', 'set', farEnd, 'up');
  await inside('route', 'add', '198.18.1.1/32', 'dev', farEnd);
  await inside('route', 'add', 'default', 'via', '198.18.1.1', 'dev', farEnd);
  const script = `require('node:http').createServer((_, answer) => answer.end('metadata')).listen(${port}, '${address}', () => console.log('listening'))`;
  const child = spawn('ip', ['netns', 'exec', name, process.execPath, '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise<void>((resolve, reject) => {
    child.stdout.once('data', () => resolve());
    child.once('exit', (code) => reject(new Error(`the listener in ${name} ended with ${code}`)));
  });
  return {
    address,
    port,
    close: async () => {
      child.removeAllListeners('exit');
      child.kill('SIGKILL');
      await remove();
    },
  };
}
