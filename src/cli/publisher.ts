import type { Command } from 'commander';
import path from 'node:path';
import { CodedError } from '../lib/errors.js';
import type { PublisherSettings } from '../publisher/main.js';
import { publisherFlags } from './publisher-options.js';
import type { PublisherFlagName } from './publisher-options.js';
import { reported } from './report.js';

/** A flag cannot be used. */
class FlagError extends CodedError<'flag'> {}

/** Runs the publisher until a signal ends it. */
export async function publisher(command: Command): Promise<void> {
  const settings = publisherSettings(command);
  const { runPublisher } = await import('../publisher/main.js');
  const code = await runPublisher(settings).catch(reported);
  // A port that is open already must not keep alive a process that could not start.
  process.exit(code);
}

export function publisherSettings(command: Command): PublisherSettings {
  const text = (name: PublisherFlagName): string => {
    const { flag, standard } = publisherFlags[name];
    const option = command.options.find(({ long }) => long === flag);
    const value: unknown = option && command.getOptionValue(option.attributeName());
    return typeof value === 'string' && value !== '' ? value : standard;
  };
  const port = (name: PublisherFlagName): number => {
    const found = text(name);
    if (/^\d{1,5}$/.test(found) && Number(found) <= 65_535) return Number(found);
    throw new FlagError('flag', { at: 'publisher', field: publisherFlags[name].flag, found, allowed: 'a port from 0 to 65535' });
  };
  return {
    configFile: text('configFile'),
    keysFolder: text('keysFolder'),
    // Git runs in other working folders, where a relative path would be wrong.
    dataFolder: path.resolve(text('dataFolder')),
    tempFolder: path.resolve(text('tempFolder')),
    gitBinary: text('gitBinary'),
    ports: { operations: port('operationPort'), artifacts: port('artifactPort'), probes: port('probePort') },
  };
}
