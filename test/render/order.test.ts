import { describe, expect, test } from '@jest/globals';
import { ApiObject, App, Chart, Testing, YamlOutputType } from 'cdk8s';
import { Construct } from 'constructs';
import { manifestsOf, renderApp } from '../../src/render/app.js';
import { orderedObjects } from '../../src/render/order.js';
import { readYaml } from '../../src/render/yaml-read.js';

const configMap = (scope: Chart, id: string, name = `n-${id}`, namespace?: string) =>
  new ApiObject(scope, id, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...(namespace ? { namespace } : {}) } });
const names = (scope: Chart | App) => manifestsOf(scope).map(({ metadata }) => metadata.name);

test('objects are listed as they were made, but those with a whole number as id before their siblings, in ascending order', () => {
  const chart = Testing.chart();
  for (const id of ['z', '10', '9', '-1', '007', 'a']) configMap(chart, id);
  expect(names(chart)).toEqual(['n-9', 'n-10', 'n-z', 'n--1', 'n-007', 'n-a']);
});

test('a dependency orders what has numbers as ids', () => {
  const chart = Testing.chart();
  const [ten, nine] = [configMap(chart, '10'), configMap(chart, '9')];
  nine.addDependency(ten);
  expect(names(chart)).toEqual(['n-10', 'n-9']);
});

test.each(['constructor', '__proto__', 'toString'])('an object with the id %s is never lost without a word', (id) => {
  expect(() => configMap(Testing.chart(), id)).toThrow(`There is already a Construct with name '${id}'`);
  const chart = Testing.chart();
  configMap(chart, `${id}-1`);
  expect(names(chart)).toEqual([`n-${id}-1`]);
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

  test('a cycle of two', () => {
    const chart = Testing.chart();
    const [a, b] = [configMap(chart, 'a'), configMap(chart, 'b')];
    a.addDependency(b);
    b.addDependency(a);
    expect(() => manifestsOf(chart)).toThrow(
      expect.objectContaining({
        code: 'dependency-cycle',
        message: 'test/a: dependencies: found "test/b", allowed: dependencies without a way back',
      }),
    );
  });

  test('a cycle behind and before objects that are not a part of it', () => {
    const chart = Testing.chart();
    const [before, behind, a, b, c] = ['before', 'behind', 'a', 'b', 'c'].map((id) => configMap(chart, id));
    behind!.addDependency(a!);
    a!.addDependency(b!, before!);
    b!.addDependency(c!);
    c!.addDependency(a!);
    expect(() => manifestsOf(chart)).toThrow('test/a: dependencies: found "test/b"');
  });

  test('a cycle of charts, by objects of both', () => {
    const app = Testing.app();
    const [one, two] = [new Chart(app, 'one'), new Chart(app, 'two')];
    configMap(one, 'a');
    configMap(two, 'b');
    one.addDependency(two);
    two.addDependency(one);
    expect(() => manifestsOf(app)).toThrow('one/a: dependencies: found "two/b"');
  });

  test('a chart that depends on an object of its own', () => {
    const chart = Testing.chart();
    chart.addDependency(configMap(chart, 'a'));
    expect(() => manifestsOf(chart)).toThrow('test/a: dependencies: found "test/a"');
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

test('twenty waves of five objects, each after all of the wave before, are ordered at once', () => {
  const chart = Testing.chart();
  let before: readonly ApiObject[] = [];
  const waves = Array.from({ length: 20 }, (_, wave) => {
    before = [0, 1, 2, 3, 4].map((i) => {
      const object = configMap(chart, `w${wave}-${i}`);
      object.addDependency(...before);
      return object;
    });
    return before.map(({ name }) => name);
  });
  expect(names(chart)).toEqual(waves.flat());
});

test('a chart comes with all its objects after the chart that it depends on', () => {
  const app = new App();
  const [first, second] = [new Chart(app, 'first'), new Chart(app, 'second')];
  for (let i = 0; i < 3; i++) for (const chart of [second, first]) configMap(chart, `o${i}`);
  first.addDependency(second);
  const paths = orderedObjects(app).map(({ node }) => node.path.split('/')[0]);
  expect(paths).toEqual(['second', 'second', 'second', 'first', 'first', 'first']);
});

test('a dependency on something without objects holds nothing up', () => {
  const app = new App();
  const [empty, chart] = [new Chart(app, 'empty'), new Chart(app, 'chart')];
  configMap(chart, 'a');
  chart.addDependency(empty);
  empty.addDependency(chart);
  expect(names(app)).toEqual(['n-a']);
});

describe('names that cdk8s makes', () => {
  const named = (ids: readonly string[], disableResourceNameHashes: boolean) => {
    const chart = new Chart(new App(), 'chart', { disableResourceNameHashes });
    for (const id of ids) new ApiObject(chart, id, { apiVersion: 'v1', kind: 'ConfigMap' });
    return chart;
  };
  const long = 'a'.repeat(70);

  test('are cut to 63 characters and told apart by their hash, always the same', () => {
    expect(names(named([`${long}1`, `${long}2`], false))).toEqual([`${'a'.repeat(54)}-c887005c`, `${'a'.repeat(54)}-c8c55c81`]);
  });

  test('that are cut to the same text without a hash are refused, and so are those that joining makes equal', () => {
    expect(() => names(named([`${long}1`, `${long}2`], true))).toThrow(
      expect.objectContaining({ code: 'duplicate-identity', message: expect.stringContaining(`chart/${long}2`) }),
    );
    const joined = named(['a-b'], true);
    new ApiObject(new Construct(joined, 'a'), 'b', { apiVersion: 'v1', kind: 'ConfigMap' });
    expect(() => names(joined)).toThrow(/chart\/a\/b: .* chart\/a-b is this object already/);
  });
});

describe('the files of an app', () => {
  test('have both objects of one name in two namespaces, whatever form of output cdk8s would take', () => {
    const app = new App({ yamlOutputType: YamlOutputType.FILE_PER_RESOURCE });
    const chart = new Chart(app, 'roles');
    configMap(chart, 'a', 'developer', 'x');
    configMap(chart, 'b', 'developer', 'y');
    const [file, ...others] = renderApp(app);
    expect(others).toEqual([]);
    expect(readYaml(file!.text, file!.path)).toHaveLength(2);
  });

  test('never have an object of one identity twice, not in two charts either', () => {
    const app = new App();
    configMap(new Chart(app, 'one'), 'a', 'same');
    configMap(new Chart(app, 'two'), 'a', 'same');
    expect(() => renderApp(app)).toThrow(/two\/a: .* one\/a is this object already/);
  });

  test('have no namespace of the chart on kinds without namespaces', () => {
    const chart = new Chart(new App(), 'c', { namespace: 'x' });
    for (const kind of [
      'Namespace',
      'ClusterRole',
      'ClusterRoleBinding',
      'CustomResourceDefinition',
      'PriorityClass',
      'ConfigMap',
    ])
      new ApiObject(chart, kind, { apiVersion: 'v1', kind, metadata: { name: 'n' } });
    expect(manifestsOf(chart).flatMap(({ kind, metadata }) => (metadata.namespace === 'x' ? [kind] : []))).toEqual(['ConfigMap']);
  });
});

test('a failed validation is reported with its construct path', () => {
  const chart = Testing.chart();
  chart.node.addValidation({ validate: () => ['not like this'] });
  expect(() => manifestsOf(chart)).toThrow(/^test: not like this$/);
});
