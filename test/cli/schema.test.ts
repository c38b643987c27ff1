import { expect, test } from '@jest/globals';
import { platformJsonSchema } from '../../src/render/platform-json-schema.js';
import { cli } from '../support/cli.js';

test('schema platform prints the JSON schema of platform.yaml', () => {
  const { code, stdout, stderr } = cli(['schema', 'platform']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toEqual(platformJsonSchema());
  expect(stdout).toContain('"$schema": "http://json-schema.org/draft-07/schema#"');
});

test('schema of anything else is refused with what there is', () => {
  const { code, stderr } = cli(['schema', 'tasks']);
  expect(code).toBe(2);
  expect(stderr).toContain("'tasks' is invalid for argument 'file'. Allowed choices are platform.");
});
