import { Option } from 'commander';
import { publisherPorts } from '../domain/publisher.js';

interface PublisherFlag {
  readonly flag: string;
  readonly argument: string;
  readonly variable: string;
  readonly standard: string;
  readonly describes: string;
}

/** The flags of `publisher`, by the name of the setting. */
export const publisherFlags = {
  configFile: {
    flag: '--config',
    argument: '<file>',
    variable: 'ORKA_PUBLISHER_CONFIG',
    standard: '/etc/orka/publisher/config.json',
    describes: 'forges that repositories may come from, and limits',
  },
  keysFolder: {
    flag: '--keys',
    argument: '<folder>',
    variable: 'ORKA_PUBLISHER_KEYS',
    standard: '/var/run/secrets/orka/publisher',
    describes: 'token, secrets and certificate; read again when they change',
  },
  dataFolder: {
    flag: '--data',
    argument: '<folder>',
    variable: 'ORKA_PUBLISHER_DATA',
    standard: '/data',
    describes: 'journal, artifacts and cache',
  },
  tempFolder: {
    flag: '--temp',
    argument: '<folder>',
    variable: 'ORKA_PUBLISHER_TEMP',
    standard: '/tmp',
    describes: 'what lives as long as an operation',
  },
  gitBinary: {
    flag: '--git',
    argument: '<program>',
    variable: 'ORKA_PUBLISHER_GIT',
    standard: 'git',
    describes: 'the git that is run',
  },
  operationPort: {
    flag: '--operation-port',
    argument: '<port>',
    variable: 'ORKA_PUBLISHER_OPERATION_PORT',
    standard: String(publisherPorts.operations),
    describes: 'operations of the controller, over TLS',
  },
  artifactPort: {
    flag: '--artifact-port',
    argument: '<port>',
    variable: 'ORKA_PUBLISHER_ARTIFACT_PORT',
    standard: String(publisherPorts.artifacts),
    describes: 'artifacts for supervisors, over plain HTTP',
  },
  probePort: {
    flag: '--probe-port',
    argument: '<port>',
    variable: 'ORKA_PUBLISHER_PROBE_PORT',
    standard: String(publisherPorts.probes),
    describes: '/healthz, /readyz and /metrics',
  },
} as const satisfies Readonly<Record<string, PublisherFlag>>;
export type PublisherFlagName = keyof typeof publisherFlags;

export function publisherOptions(): readonly Option[] {
  return Object.values(publisherFlags).map(({ flag, argument, variable, standard, describes }) =>
    new Option(`${flag} ${argument}`, describes).env(variable).default(standard),
  );
}
