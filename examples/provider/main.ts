/** Writes the manifests of all examples to `dist`, or to `CDK8S_OUTDIR`: one file an example. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { renderApp } from 'orka-workspaces/render';
import { allExamples } from './all.js';

const out = process.env['CDK8S_OUTDIR'] ?? 'dist';
mkdirSync(out, { recursive: true });
for (const { path, text } of renderApp(allExamples())) writeFileSync(`${out}/${path}`, text);
