import { describe, expect, test } from '@jest/globals';
import { watchServedFields } from '../../src/controller/served-fields.js';
import type { KubeClient } from '../../src/kube/client.js';
import { KubeError } from '../../src/kube/errors.js';
import type { JsonObject } from '../../src/lib/json.js';
import { compile } from '../../src/render/compile.js';
import { fakeClock } from '../support/fake-clock.js';
import { poolClass } from '../support/objects.js';
import { pinnedSchemas } from '../support/provider-schemas.js';

const plain = compile(poolClass());
const graceful = compile(
  poolClass({
    patches: [
      { target: { kind: 'SandboxWarmPool' }, operations: [{ op: 'add', path: '/spec/readinessGracePeriodSeconds', value: 60 }] },
    ],
  }),
);

/** As v1.0.12 publishes its warm pool, by the notes of that release: no such provider runs here. */
function newerSchemas(): Record<string, JsonObject> {
  const { SandboxWarmPool = {}, ...others } = pinnedSchemas();
  const { spec, ...members } = SandboxWarmPool['properties'] as { readonly spec: JsonObject };
  const grace = { readinessGracePeriodSeconds: { type: 'integer', format: 'int32', minimum: 30 } };
  const newer = { ...spec, properties: { ...(spec['properties'] as JsonObject), ...grace } };
  return { ...others, SandboxWarmPool: { ...SandboxWarmPool, properties: { ...members, spec: newer } } };
}

function watching(schemas: () => Record<string, JsonObject>) {
  const clock = fakeClock();
  const [asked, errors]: [string[], unknown[]] = [[], []];
  const seen = { changes: 0 };
  const client = {
    request: ({ path }: { readonly path: string }) => {
      asked.push(path);
      return Promise.resolve().then(() => ({ components: { schemas: schemas() } }));
    },
  } as unknown as KubeClient;
  const fields = watchServedFields(client, {
    onChange: () => {
      seen.changes++;
    },
    onError: (error) => errors.push(error),
    clock,
  });
  return { ...fields, clock, asked, errors, seen };
}

describe('a class beside the schemas of the installed provider', () => {
  test('has no gap on the pinned release without fields of later ones', async () => {
    const { looked, gapsOf, stop, asked } = watching(pinnedSchemas);
    await looked;
    expect(gapsOf(plain)).toEqual([]);
    expect(asked).toEqual(['/openapi/v3/apis/extensions.agents.x-k8s.io/v1beta1']);
    await stop();
  });

  test('names a field of a later release, and not the release', async () => {
    const { looked, gapsOf, stop } = watching(pinnedSchemas);
    await looked;
    expect(gapsOf(graceful)).toEqual(['SandboxWarmPool.spec.readinessGracePeriodSeconds is not served']);
    await stop();
  });

  test('has no gap on a release that serves the field (v1.0.12)', async () => {
    const { looked, gapsOf, stop } = watching(newerSchemas);
    await looked;
    expect([gapsOf(plain), gapsOf(graceful)]).toEqual([[], []]);
    await stop();
  });

  test('is compared again soon after the provider was upgraded, and only then', async () => {
    let schemas = pinnedSchemas;
    const { looked, gapsOf, stop, clock, seen } = watching(() => schemas());
    await looked;
    expect(gapsOf(graceful)).toHaveLength(1);
    await clock.advance(60_000);
    expect(seen.changes).toBe(1);
    schemas = newerSchemas;
    await clock.advance(15_000);
    expect([gapsOf(graceful), seen.changes]).toEqual([[], 2]);
    await stop();
  });

  test('is asked for rarely while nothing is missing', async () => {
    const { looked, gapsOf, stop, clock, asked } = watching(newerSchemas);
    await looked;
    gapsOf(graceful);
    await clock.advance(60_000);
    expect(asked).toHaveLength(1);
    await stop();
  });

  test('has no gap while nothing can be read, which is told and tried again', async () => {
    let down = true;
    const { looked, gapsOf, stop, clock, errors } = watching(() => {
      if (down) throw new KubeError('unavailable' as never, { at: 'GET', says: 'down' });
      return pinnedSchemas();
    });
    await looked;
    expect([gapsOf(graceful), errors.length]).toEqual([[], 1]);
    down = false;
    await clock.advance(15_000);
    expect(gapsOf(graceful)).toHaveLength(1);
    await stop();
  });
});
