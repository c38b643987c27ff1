/** Every rule of the schemas, asked of a real API server: it and the offline validation say the same. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { resolve } from 'node:path';
import type { Manifest } from '../../src/api/index.js';
import { validate, validateUpdate } from '../../src/api/index.js';
import { create } from '../../src/kube/create.js';
import { KubeError } from '../../src/kube/errors.js';
import { celRows } from '../api/cel-rows.js';
import type { CelRow } from '../api/cel-rows.js';
import { applyAll, cleanUp, kube, kubectl, manager, namespace } from './support/cluster.js';

const place = 'orka-parity-test';

beforeAll(async () => {
  await kubectl(['apply', '--server-side', '-f', resolve('dist/apply/0000-crds.k8s.yaml')]);
  await kubectl(['wait', '--for=condition=Established', 'crd', '-l', 'app.kubernetes.io/managed-by=orka-workspaces']);
  await applyAll([namespace(place)]);
}, 60_000);
afterAll(() => cleanUp([{ apiVersion: 'v1', kind: 'Namespace', name: place }]), 120_000);

const rows = celRows.map((row, index) => ({ ...row, name: `row-${index}` }));

/** An object of a row under the name of the row. Finalizers are left out, since nobody would take them away. */
function placed(object: object, name: string): Manifest {
  const { metadata, ...rest } = object as Manifest;
  const { finalizers: _finalizers, ...kept } = metadata;
  return { ...rest, metadata: { ...kept, name, namespace: place } };
}

/** Stores an object with its status, and says what the server has. */
async function store(object: Manifest): Promise<Manifest> {
  const stored = await create(kube, object, { manager });
  return object['status'] === undefined ? stored : put(object, stored, { subresource: 'status' });
}

async function put(
  object: Manifest,
  stored: Manifest,
  { subresource, dryRun = false }: { readonly subresource: 'status' | undefined; readonly dryRun?: boolean },
): Promise<Manifest> {
  const path = await kube.pathOf({ ...object, name: object.metadata.name, namespace: place });
  const { uid, resourceVersion } = stored.metadata;
  return (await kube.request({
    method: 'PUT',
    path: subresource === undefined ? path : `${path}/${subresource}`,
    query: { fieldManager: manager, fieldValidation: 'Strict', dryRun: dryRun ? 'All' : undefined },
    body: { ...object, metadata: { ...object.metadata, uid: uid ?? '', resourceVersion: resourceVersion ?? '' } },
  })) as Manifest;
}

interface Answer {
  readonly accepted: boolean;
  /** `field: message` of each cause. */
  readonly causes: readonly string[];
}

/** The server's answer to an object of a row: a dry run, of the status where the rule stands there. */
async function answerTo(row: CelRow, object: Manifest, stored: Manifest | undefined): Promise<Answer> {
  try {
    if (!stored) await create(kube, object, { manager, dryRun: true });
    else await put(object, stored, { subresource: inStatus(row) ? 'status' : undefined, dryRun: true });
    return { accepted: true, causes: [] };
  } catch (error) {
    if (!(error instanceof KubeError) || error.code !== 'invalid') throw error;
    return { accepted: false, causes: error.causes.map(({ field = '', message = '' }) => `${field}: ${message}`) };
  }
}

const inStatus = ({ field }: CelRow): boolean => field.startsWith('status');

/** What must be in the cluster before a row can be asked: the stored object of a transition, or any object for a rule of the status. */
function storedFor(row: CelRow, name: string): Manifest | undefined {
  if (row.from) return placed(row.from, name);
  if (!inStatus(row)) return undefined;
  const { status: _status, ...spec } = placed(row.accepted, name);
  return spec;
}

const offline = (row: CelRow, object: Manifest) =>
  row.from ? validateUpdate(row.kind, placed(row.from, object.metadata.name), object) : validate(row.kind, object);

describe.each(rows)('$kind.kind: $says', (row) => {
  let stored: Manifest | undefined;
  beforeAll(async () => {
    const object = storedFor(row, row.name);
    stored = object && (await store(object));
  });

  test('both accept the object that keeps the rule', async () => {
    const object = placed(row.accepted, row.name);
    expect(offline(row, object)).toEqual([]);
    expect(await answerTo(row, object, stored)).toEqual({ accepted: true, causes: [] });
  });

  test('both refuse the object that breaks it, with the same words at the same member', async () => {
    const object = placed(row.refused, row.name);
    const expected = `${row.field || '<nil>'}: `;
    const { accepted, causes } = await answerTo(row, object, stored);
    expect(accepted).toBe(false);
    expect(causes.filter((cause) => cause.startsWith(expected) && cause.includes(row.says))).toHaveLength(1);
    expect(offline(row, object).filter(({ field, allowed }) => field === row.field && allowed === row.says)).toHaveLength(1);
  });
});

test('the CRDs in the cluster have the rules that were asked, and no others', async () => {
  const crds = await kubectl(['get', 'crd', '-l', 'app.kubernetes.io/managed-by=orka-workspaces', '-o', 'json']);
  expect(crds.match(/"rule": "/g)).toHaveLength(celRows.length);
});
