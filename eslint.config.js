import js from '@eslint/js';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

/** What each room may not look into (ARCHITECTURE.md, "Rooms"). Imports point downwards only. */
const closedTo = {
  lib: ['api', 'domain', 'constructs', 'render', 'kube', 'harness', 'source', 'publisher', 'controller', 'supervisor', 'cli'],
  api: ['domain', 'constructs', 'render', 'kube', 'harness', 'source', 'publisher', 'controller', 'supervisor', 'cli'],
  domain: ['constructs', 'render', 'kube', 'harness', 'source', 'publisher', 'controller', 'supervisor', 'cli'],
  kube: ['constructs', 'render', 'harness', 'source', 'publisher', 'controller', 'supervisor', 'cli'],
  harness: ['constructs', 'render', 'kube', 'source', 'publisher', 'controller', 'supervisor', 'cli'],
  source: ['constructs', 'render', 'kube', 'harness', 'publisher', 'controller', 'supervisor', 'cli'],
  publisher: ['constructs', 'render', 'kube', 'harness', 'controller', 'supervisor', 'cli'],
  constructs: ['render', 'kube', 'harness', 'source', 'publisher', 'controller', 'supervisor', 'cli'],
  render: ['kube', 'harness', 'source', 'publisher', 'controller', 'supervisor', 'cli'],
  supervisor: ['constructs', 'render', 'kube', 'publisher', 'controller', 'cli'],
  controller: ['publisher', 'supervisor', 'cli'],
};

const rooms = Object.entries(closedTo).map(([room, closed]) => ({
  files: [`src/${room}/**/*.ts`],
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          {
            regex: `^(\\.\\./)+(?:${closed.join('|')})(?:/|$)`,
            message: `src/${room} may not import upwards; see "Rooms" in ARCHITECTURE.md.`,
          },
        ],
      },
    ],
  },
}));

export default defineConfig(
  globalIgnores([
    'lib/',
    'dist/',
    'docs/api/',
    'imports/',
    'src/constructs/pod-types.ts',
    'src/constructs/schemas.ts',
    'node_modules/',
    'test/cluster/.cache/',
    'coverage/',
  ]),
  js.configs.recommended,
  tseslint.configs.strictTypeChecked,
  tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        projectService: {
          allowDefaultProject: ['*.js', 'scripts/*.js', 'test/bench/*.js'],
          maximumDefaultProjectFileMatchCount_THIS_WILL_SLOW_DOWN_LINTING: 20,
        },
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { varsIgnorePattern: '^_', argsIgnorePattern: '^_' }],
      // Kubernetes' models are classes by generation; nobody constructs them.
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/consistent-type-definitions': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      'no-restricted-syntax': ['error', { selector: 'ExportDefaultDeclaration', message: 'Named exports only.' }],
    },
  },
  ...rooms,
  {
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
    },
  },
  {
    files: ['**/*.js'],
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        URL: 'readonly',
        performance: 'readonly',
        Buffer: 'readonly',
        structuredClone: 'readonly',
        setTimeout: 'readonly',
        clearTimeout: 'readonly',
        fetch: 'readonly',
        AbortSignal: 'readonly',
      },
    },
    rules: { 'no-restricted-syntax': 'off' },
  },
);
