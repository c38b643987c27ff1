import { describe, expect, test } from '@jest/globals';
import { ApiObject, App, Chart, Testing } from 'cdk8s';
import { manifestsOf } from '../../src/render/app.js';

const configMap = (scope: Chart, id: string, name = `n-${id}`, namespace?: string) =>
  new ApiObject(scope, id, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...(namespace ? { namespace } : {}) } });
const names = (scope: Chart | App) => manifestsOf(scope).map(({ metadata }) => metadata.name);

test('objects are listed as they were made, also with ids that look like numbers', () => {
  const chart = Testing.chart();
  for (const id of ['z', '10', '9', 'a']) configMap(chart, id);
  // Constructs keep their children in a plain object, which moves such ids forward; dependencies are what orders them.
  expect([...names(chart)].sort()).toEqual(['n-10', 'n-9', 'n-a', 'n-z']);
});

test('what an object depends on comes before it', () => {
  const chart = Testing.chart();
  const [a, b, c] = [configMap(chart, 'a'), configMap(chart, 'b'), configMap(chart, 'c')];
  a.addDependency(c);
  c.addDependency(b);
  expect(names(chart)).toEqual(['n-b', 'n-c', 'n-a']);
});

describe('refused with both construct paths:', () => {
  test('two objects of one identity', () => {
    const chart = Testing.chart();
    configMap(chart, 'a', 'same');
    configMap(chart, 'b', 'same');
    expect(() => manifestsOf(chart)).toThrow(
      /test\/b: metadata.name: found "\/ConfigMap\/\/same", allowed: another name: test\/a is this object already/,
    );
  });

  test('an object that depends on itself', () => {
    const chart = Testing.chart();
    const a = configMap(chart, 'a');
    a.addDependency(a);
    expect(() => manifestsOf(chart)).toThrow(/test\/a: dependencies: found "test\/a"/);
  });

  test('a cycle', () => {
    const chart = Testing.chart();
    const [a, b] = [configMap(chart, 'a'), configMap(chart, 'b')];
    a.addDependency(b);
    b.addDependency(a);
    expect(() => manifestsOf(chart)).toThrow(expect.objectContaining({ code: 'dependency-cycle' }));
  });
});

test('one name in two namespaces is two objects', () => {
  const chart = Testing.chart();
  configMap(chart, 'a', 'developer', 'x');
  configMap(chart, 'b', 'developer', 'y');
  expect(names(chart)).toEqual(['developer', 'developer']);
});

test('twenty charts in a chain of five objects each are ordered at once', () => {
  const app = new App();
  const charts = Array.from({ length: 20 }, (_, wave) => new Chart(app, `wave-${wave}`));
  charts.forEach((chart, wave) => {
    for (let i = 0; i < 5; i++) configMap(chart, `o-${i}`, `w${wave}-${i}`);
    const before = charts[wave - 1];
    if (before) chart.addDependency(before);
  });
  expect(names(app)).toEqual(charts.flatMap((_, wave) => [0, 1, 2, 3, 4].map((i) => `w${wave}-${i}`)));
});

test('a failed validation is reported with its construct path', () => {
  const chart = Testing.chart();
  chart.node.addValidation({ validate: () => ['not like this'] });
  expect(() => manifestsOf(chart)).toThrow(/test: allowed: not like this/);
});
