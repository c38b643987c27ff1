/** One ACP agent: a child process that was greeted, authenticated and given a session. */
import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import { AcpError, createAcpConnection, within } from './acp.js';
import type { AcpConnection, AcpPeer } from './acp.js';
import { startChild } from './child.js';
import type { Child, ChildOptions } from './child.js';
import { deferred } from './deferred.js';
import { privilegesOf } from './processes.js';
import type { ProcessOwner } from './processes.js';
import { checkModel, readRefusal, sessionIdOf } from './session-answer.js';
import type { WantedModel } from './session-answer.js';
import { childEnded, WorkerWatch } from './worker.js';

export interface AgentOptions extends ChildOptions, WantedModel {
  readonly authMethod?: string | undefined;
  /** See {@link Provider.worker}. */
  readonly worker?: string | undefined;
  /** See {@link Agent.literal}. */
  readonly literal?: ((text: string) => string) | undefined;
  /** Names of the session that the agent may repeat to its own telemetry; nothing depends on them. */
  readonly session: { readonly runtimeSessionID: string; readonly generation: number; readonly profileDigest: string };
  /** Bytes of one message. */
  readonly maxMessage: number;
  /** Milliseconds that each step of the greeting may take. */
  readonly initializeTimeout: number;
  readonly reports: AgentReports;
}

/** What an agent does apart from its prompts. */
export interface AgentReports {
  /** See {@link AcpHandlers.skipped}. */
  readonly skippedLine: (line: string) => void;
  /** A part of an answer came while no prompt ran and was dropped; `count` of them so far. */
  readonly lateUpdate: (count: number) => void;
}

/** What the agent tells the prompt that is running. */
interface AgentListener {
  readonly update: (update: Json | undefined) => void;
  /** An update that was too long to be read. */
  readonly oversized: (kind: string | undefined) => void;
  readonly permission: (params: JsonObject) => Json;
}

export interface Agent {
  readonly providerSessionID: string;
  readonly owner: ProcessOwner;
  /** A text that the agent takes as it is, and not as a command to itself. */
  readonly literal: (text: string) => string;
  /** Sends a prompt. `written` resolves at the acceptance boundary: from then on the agent may act. */
  readonly prompt: (
    content: readonly Json[],
    listener: AgentListener,
  ) => { readonly written: Promise<void>; readonly answer: Promise<Json> };
  /** Asks the agent to end the prompt. */
  readonly cancel: () => void;
  /** Resolves when the agent cannot be spoken to any more. */
  readonly closed: Promise<AcpError>;
}

const clientInfo = { name: 'orka-acp-runtime', version: '0.1.0' } as const;
/** The client lends the agent nothing: it has a workspace of its own. */
const clientCapabilities = { fs: { readTextFile: false, writeTextFile: false }, terminal: false } as const;

/** Throws {@link AcpError}; the processes of a failed start are the caller's to end. */
export async function startAgent(options: AgentOptions, started: (child: Child) => void): Promise<Agent> {
  const child = await startChild(options);
  started(child);
  const { stdin, stdout } = child.process;
  const lost = deferred<string>();
  const watch = options.worker === undefined ? undefined : new WorkerWatch(child, options.worker, lost.resolve);
  const peer = {
    stdin,
    stdout,
    exited: Promise.race([child.exited, lost.promise]),
    childEnded: (report: JsonObject) => watch?.reported(report),
  };
  const agent = await connectAgent(peer, child.owner, options);
  if (options.identity) verifyIdentity(child.pid, options.identity);
  if (watch?.begin() === false)
    throw new AcpError('protocol', { at: 'agent', says: `no process ${options.worker ?? ''} runs below the agent` });
  void agent.closed.then(() => watch?.stop());
  return agent;
}

/** The child at the other end, and what to do with its reports of children that ended. */
interface AgentPeer extends AcpPeer {
  readonly childEnded?: (report: JsonObject) => void;
}

/** Greets the agent at the other end of the pipes of a child. Throws {@link AcpError}. */
export async function connectAgent(
  peer: AgentPeer,
  owner: ProcessOwner,
  options: Omit<AgentOptions, keyof ChildOptions> & Pick<ChildOptions, 'cwd'>,
): Promise<Agent> {
  let listener: AgentListener | undefined;
  let late = 0;
  const connection = createAcpConnection(
    peer,
    {
      notification: (method, params) => {
        if (method === childEnded) peer.childEnded?.(params);
        if (method !== 'session/update') return;
        const { update } = params;
        if (listener) listener.update(update);
        else if (isAnswerPart(update)) options.reports.lateUpdate(++late);
      },
      request: (method, params) => {
        if (method !== 'session/request_permission') return undefined;
        return Promise.resolve(listener?.permission(params) ?? { outcome: { outcome: 'cancelled' } });
      },
      oversized: (kind) => listener?.oversized(kind),
      skipped: options.reports.skippedLine,
    },
    options,
  );
  const providerSessionID = await greet(connection, options);
  return {
    providerSessionID,
    owner,
    literal: options.literal ?? ((text) => text),
    prompt: (content, next) => {
      listener = next;
      return connection.request('session/prompt', { sessionId: providerSessionID, prompt: content }, () => {
        listener = undefined;
      });
    },
    cancel: () => {
      connection.notify('session/cancel', { sessionId: providerSessionID });
    },
    closed: connection.closed,
  };
}

const answerParts: readonly unknown[] = ['agent_message_chunk', 'tool_call', 'tool_call_update', 'plan'];

/** Titles, commands and the like may come at any time. */
function isAnswerPart(update: Json | undefined): boolean {
  return isObject(update) && answerParts.includes(update['sessionUpdate']);
}

/** Version, authentication, session; the id of the session. */
async function greet(connection: AcpConnection, options: Parameters<typeof connectAgent>[2]): Promise<string> {
  const ask = (method: string, params: JsonObject) =>
    within(connection.request(method, params).answer, options.initializeTimeout, method).catch((error: unknown) => {
      throw readRefusal(error, method);
    });
  const hello = await ask('initialize', { protocolVersion: 1, clientCapabilities, clientInfo });
  if (!isObject(hello) || hello['protocolVersion'] !== 1)
    throw new AcpError('protocol', { at: 'agent', field: 'protocolVersion', ...versionFound(hello), allowed: '1' });
  if (options.authMethod !== undefined) await ask('authenticate', { methodId: options.authMethod });
  const { runtimeSessionID, generation, profileDigest } = options.session;
  const session = await ask('session/new', {
    cwd: options.cwd,
    mcpServers: [],
    _meta: { 'orka.runtimeSessionID': runtimeSessionID, 'orka.generation': generation, 'orka.profileDigest': profileDigest },
  });
  checkModel(session, options);
  return sessionIdOf(session);
}

/** A number is shown, a text may be anything. */
function versionFound(hello: Json): { readonly found?: number } {
  const version = isObject(hello) ? hello['protocolVersion'] : undefined;
  return typeof version === 'number' ? { found: version } : {};
}

/** That a program changes the user of a child is believed when the kernel says so. */
function verifyIdentity(pid: number, { uid, gid }: { readonly uid: number; readonly gid: number }): void {
  const found = privilegesOf(pid);
  const four = (id: number) => [id, id, id, id].join('\t');
  const own =
    found?.uids === four(uid) &&
    found.gids === four(gid) &&
    found.groups === '' &&
    /^0+$/.test(found.capabilities) &&
    found.noNewPrivileges === '1';
  if (!own) throw new AcpError('protocol', { at: 'agent', says: 'its process has another user, groups or capabilities' });
}
