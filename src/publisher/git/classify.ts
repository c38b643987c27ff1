import type { EgressRefusal } from './egress.js';
import { unrunnableGit } from './runner.js';
import type { GitFailure } from './runner.js';
import { SourceError } from './source-error.js';
import type { Finding } from '../../lib/errors.js';
import type { ErrorDetail, PublisherCode } from '../../source/errors.js';

type Verdict = readonly [PublisherCode, Partial<Finding>, ErrorDetail?];

const byRefusal: Readonly<Record<EgressRefusal, Verdict>> = {
  'host-not-allowed': ['host_not_allowed', { says: 'the forge is not one of the listed forges' }],
  'address-refused': [
    'address_refused',
    {
      says: 'the forge has an address that it may not have',
      allowed: 'a public address; with private: true, an address in its peer.cidr, or a private one where it has none',
    },
  ],
  'name-unknown': ['scm_failure', { says: 'the name of the forge has no address' }],
  unreachable: ['scm_failure', { says: 'the forge accepts no connection' }],
  busy: ['busy', { says: 'too many connections to forges are open' }],
  'too-many-bytes': ['scm_output_limit', { says: 'the forge sent more than a connection may carry' }],
  'too-long': ['scm_timeout', { says: 'the connection to the forge lasted too long' }],
};

/** What git writes in the locale C, first match wins. Source: repository.md §8. */
const byWords: readonly (readonly [RegExp, ...Verdict])[] = [
  [
    /returned error: 40[13]\b|could not read (Username|Password)|Authentication failed/,
    'credential_refused',
    { says: 'the forge refuses the credential', allowed: 'a credential that may read the repository' },
  ],
  [
    /returned error: 404\b|repository '.*' not found/,
    'repository_absent',
    { says: 'the forge has no such repository for this credential' },
  ],
  [/returned error: 3\d\d\b/, 'redirect_refused', { says: 'the forge redirects', allowed: 'the URL that it redirects to' }],
  [/returned error: 429\b/, 'scm_failure', { says: 'the forge limits the rate of requests' }],
  [/returned error: [45]\d\d\b/, 'scm_failure', { says: 'the forge answers with an error' }],
  [
    /certificate verif|SSL certificate problem|certificate subject name|alternative certificate|certificate has expired|unable to get local issuer|error setting certificate|gnutls_handshake\(\) failed: (?!The TLS connection was non-properly terminated|Error in the pull function)/i,
    'tls_failed',
    {
      says: 'the certificate of the forge cannot be verified',
      allowed: 'a certificate of an authority that is configured for this forge',
    },
  ],
  [
    /not our ref|couldn't find remote ref|Server does not allow request for unadvertised/,
    'source_ref_absent',
    { field: 'sourceRef', says: 'the repository has no such ref' },
  ],
  [/File too large/, 'tree_refused', { says: 'the repository is larger than a workspace may be' }, { reason: 'tree_too_large' }],
  [
    /[Oo]ut of memory|failed to allocate|Cannot allocate memory/,
    'tree_refused',
    { says: 'an object of the repository is larger than a file may be' },
    { reason: 'file_too_large' },
  ],
  [
    /early EOF|RPC failed|hung up unexpectedly|unexpected disconnect|Empty reply|Connection reset|Could not resolve|Failed to connect|recv error|Recv failure|non-properly terminated|transfer closed|Error in the pull function/,
    'scm_failure',
    { says: 'the connection to the forge broke' },
  ],
  [
    /error in object|fsck error|bad pack|pack has|pack is corrupted|index-pack failed|invalid index-pack|inflate|did not receive expected object|is corrupt|unpack-objects|missing (blob|tree|commit)|remote did not send all/,
    'source_corrupt',
    { says: 'the repository has objects that git refuses' },
  ],
];
const crashes: readonly (NodeJS.Signals | null)[] = ['SIGSEGV', 'SIGBUS', 'SIGABRT', 'SIGILL', 'SIGFPE'];

/** The code of a failed call. `at`: the repository. */
export function classify(failure: GitFailure, refusal: EgressRefusal | undefined, at: string): SourceError {
  const [code, finding, detail] = verdictOf(failure, refusal);
  return new SourceError(code, { at, ...finding }, detail);
}

function verdictOf(failure: GitFailure, refusal: EgressRefusal | undefined): Verdict {
  if (failure.kind === 'aborted') return ['operation_interrupted', { says: 'the operation was stopped' }];
  if (failure.kind === 'not-started') return ['git_unavailable', unrunnableGit];
  if (refusal) return byRefusal[refusal];
  if (failure.kind === 'timeout') return ['scm_timeout', { says: 'the forge did not answer in time' }];
  if (failure.kind === 'output') return ['scm_output_limit', { says: 'the forge answered with too much' }];
  for (const [pattern, ...verdict] of byWords) if (failure.says(pattern)) return verdict;
  if (crashes.includes(failure.signal)) return ['source_corrupt', { says: 'git fails on the objects of the repository' }];
  return ['scm_failure', { says: 'the forge did not answer as a Git server' }];
}
