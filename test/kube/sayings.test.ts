import { describe, expect, test } from '@jest/globals';
import { createLog } from '../../src/controller/log.js';
import { createTransport } from '../../src/kube/transport.js';
import { fakeApi, reply } from '../support/fake-api.js';
import { KubeError } from '../../src/kube/errors.js';
import { sayingOf, withoutValues } from '../../src/kube/sayings.js';

const prompt = 'Refactor the "billing" module: keep {brackets} and [lists], please.';
const object = { apiVersion: 'core.orka.ai/v1alpha1', kind: 'Task', spec: { prompt }, status: { phase: 'Lost' } };
const json = JSON.stringify(object);
const printed = `map[string]interface {}{"kind":"Task", "spec":map[string]interface {}{"prompt":${JSON.stringify(prompt)}}}`;

describe('of a value that the server quotes nothing is repeated', () => {
  test.each<[string, string, string]>([
    [
      'as an object',
      `Task "a" is invalid: <nil>: Invalid value: ${json}: status.phase in body should be one of [A B]`,
      'Task "a" is invalid: <nil>: Invalid value: …: status.phase in body should be one of [A B]',
    ],
    [
      'as a quoted text',
      `spec: Invalid value: ${JSON.stringify(json)}: bad, b: Required value`,
      'spec: Invalid value: …: bad, b: Required value',
    ],
    [
      'as Go prints a map',
      `[a: Invalid value: ${printed}: bad, b: Required value]`,
      '[a: Invalid value: …: bad, b: Required value]',
    ],
    ['as a prompt', `spec.prompt: Invalid value: ${JSON.stringify(prompt)}: too long`, 'spec.prompt: Invalid value: …: too long'],
    [
      'at the end of a list',
      `[a: Duplicate value: {"name":"x"}, b: Required value]`,
      '[a: Duplicate value: …, b: Required value]',
    ],
    ['in a sentence of its own', `admission denied ${json} for a reason`, 'admission denied {…} for a reason'],
    ['as an object without an end', `could not read ${json.slice(0, 80)}`, 'could not read {…}'],
    ['as a long text', `quoted ${JSON.stringify(`${prompt} ${prompt} ${prompt}`)} here`, 'quoted "…" here'],
    [
      'that is not supported, unless it is one word',
      `a: Unsupported value: "two words": supported values: "A"`,
      'a: Unsupported value: …: supported values: "A"',
    ],
  ])('%s', (_, text, expected) => {
    expect(withoutValues(text)).toBe(expected);
  });
});

test.each([
  'tasks.core.orka.ai is forbidden: User "system:serviceaccount:orka-system:orka-workspaces-controller" cannot list resource "tasks" in API group "core.orka.ai" in the namespace "demo"',
  'Apply failed with 1 conflict: conflict with "kubectl" using v1: .spec.replicas',
  'spec.replicas: Invalid value: -1: must be greater than or equal to 0',
  'status.phase: Unsupported value: "Lost": supported values: "Pending", "Running"',
  'failed to create typed patch object (a/b; core.orka.ai/v1alpha1, Kind=Task): .spec.x: field not declared in schema',
])('what names things stays: %s', (text) => {
  expect(withoutValues(text)).toBe(text);
});

/** As the API server of Kubernetes 1.34 answers a patch of a status with a field that its kind does not have, and strict field validation. */
const refusedPatch = (() => {
  const stored = {
    apiVersion: 'core.orka.ai/v1alpha1',
    kind: 'Task',
    metadata: {
      generation: 1,
      name: 'smoke',
      namespace: 'demo',
      resourceVersion: '512',
      uid: '2d9bbe20-2c91-4e26-9dd3-7f35175159cf',
    },
    spec: { priority: 500, prompt, type: 'agent' },
    status: { futureField: 'x' },
  };
  const message = `Invalid value: ${JSON.stringify(JSON.stringify(stored))}: strict decoding error: unknown field "status.futureField"`;
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: ` "" is invalid: patch: ${message}`,
    reason: 'Invalid',
    details: { causes: [{ reason: 'FieldValueInvalid', message, field: 'patch' }] },
    code: 422,
  };
})();

test('an answer of a real API server that echoes the object is an error with the cause and without the object', async () => {
  const api = await fakeApi((_, response) => reply(response, 422, refusedPatch));
  const transport = createTransport({ server: api.url, credentials: () => ({}) });
  const path = '/apis/core.orka.ai/v1alpha1/namespaces/demo/tasks/smoke/status';
  const lines: string[] = [];
  try {
    const error: unknown = await transport.request({ method: 'PATCH', path, body: {} }).catch((one: unknown) => one);
    createLog('error', (line) => lines.push(line)).error('reconcile', error);
    expect(error).toMatchObject({
      code: 'invalid',
      message: `PATCH ${path}: "" is invalid: patch: Invalid value: …: strict decoding error: unknown field "status.futureField"`,
    });
    expect(lines.join()).toContain('status.futureField');
    expect(lines.join()).not.toContain('billing');
  } finally {
    transport.close();
    await api.close();
  }
});

describe('of an invalid object', () => {
  const causes = [
    { field: 'status.execution', reason: 'FieldValueRequired', message: 'Required value: state' },
    { field: '<nil>', reason: 'FieldValueInvalid', message: `Invalid value: ${json}: some validation rules were not checked` },
  ];
  const says = `Task.core.orka.ai "smoke" is invalid: [<nil>: Invalid value: ${json}: not checked, status.execution: Required value: state]`;

  test('the causes are told, each with its field', () => {
    expect(sayingOf({ says, reason: 'Invalid', causes })).toBe(
      'Task.core.orka.ai "smoke" is invalid: status.execution: Required value: state; Invalid value: …: some validation rules were not checked',
    );
  });

  test('a cause is told however large the object is that the message begins with', () => {
    const large = `Task "a" is invalid: [<nil>: Invalid value: ${JSON.stringify({ prompt: 'x'.repeat(5_000) })}: no]`;
    const error = new KubeError('invalid', { at: 'PATCH /x', says: large, reason: 'Invalid', causes, status: 422 });
    expect(error.message).toContain('status.execution: Required value: state');
    expect(error.message).not.toContain('xxx');
  });

  test('many causes are counted', () => {
    const many = Array.from({ length: 8 }, (_, index) => ({ field: `spec.f${index}`, message: 'Required value' }));
    expect(sayingOf({ says, reason: 'Invalid', causes: many })).toMatch(/spec\.f4: Required value; and 3 more$/);
  });
});
