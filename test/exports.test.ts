import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import ts from 'typescript';
import { limit } from './support/pace.js';

/** Source files of the entry points that package.json lists; those of `imports/` are generated. */
function entryPoints(): readonly string[] {
  const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly exports: Readonly<Record<string, unknown>> };
  return Object.entries(exports).flatMap(([name, target]) => {
    const types = (target as { readonly types?: string }).types;
    return types === undefined || name.startsWith('./imports/')
      ? []
      : [types.replace('./lib/', 'src/').replace(/\.d\.ts$/, '.ts')];
  });
}

interface Described {
  readonly name: string;
  readonly text: string;
}

/** Each export with what an editor shows for it. */
function described(files: readonly string[]): readonly Described[] {
  const { config } = ts.readConfigFile('tsconfig.json', (file) => ts.sys.readFile(file)) as { config: unknown };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, process.cwd());
  const program = ts.createProgram([...files], { ...options, types: [] });
  const checker = program.getTypeChecker();
  return files.flatMap((file) => {
    const source = program.getSourceFile(resolve(file)) ?? program.getSourceFile(file);
    const symbol = source && checker.getSymbolAtLocation(source);
    if (!symbol) throw new Error(`${file} is no module`);
    return checker.getExportsOfModule(symbol).map((one) => {
      const target = one.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(one) : one;
      const text = ts.displayPartsToString(target.getDocumentationComment(checker)).trim();
      return { name: `${file}: ${one.name}`, text };
    });
  });
}

test(
  'each export of the package has a sentence for the editor',
  () => {
    const files = entryPoints();
    expect(files).toEqual(['src/constructs/index.ts', 'src/api/index.ts', 'src/render/index.ts']);
    const all = described(files);
    expect(all.length).toBeGreaterThan(150);
    expect(all.filter(({ text }) => !/^[A-Z`{].*[.!)`]/s.test(text))).toEqual([]);
  },
  limit(60_000),
);
