import type { Estimand } from "../../shared/src/estimand.js";
import { type Sentence, say } from "./catalogue/languages.js";

/** What the studio's server is asked and answers. The key goes with every request; the cookie no script can read. */
const KEY = "hazemap key";

export interface SameAs {
  command: string;
  python: string;
}
export interface Entry {
  name: string;
  kind: "folder" | "table" | "release";
  size: number;
}
export interface Folder {
  root: string;
  folder: string;
  entries: Entry[];
}
export interface Preview {
  columns: { name: string; kind: string }[];
  more: number;
  rows_in_all: number | null;
  geometry: string | null;
  guessed: Record<string, string>;
  rows: string[][];
  rows_shown: boolean;
}
export interface PlanPicture {
  truth: string;
  shown: string;
  cells: number;
  price: string;
}
/** What the server says no to: in English, and as a sentence of the catalogue where the studio itself says it. */
export interface Told {
  type: string;
  message: string;
  said: { sentence: Sentence; words: Record<string, string>; more: boolean } | null;
}
export interface ValuesPlan {
  cells: number | null;
  slots: number;
  places: number | null;
  price: string;
  people: number[];
  cap: number;
  of_range: boolean;
  reaches: { max_cells_per_person: number; stddev: number; threshold: number; widths: (number | null)[] }[];
  same_as: SameAs;
}
export interface Plan {
  levels: { name: string; metres: number; cells: number; stddev: number; typical: number; misplaced: number }[];
  recommended: { flat: string; uniform: string };
  heading: string;
  advice: string[];
  same_as: SameAs;
}
export interface Said {
  cap: string | null;
  spent: string | null;
  left: string | null;
  protects: string | null;
}
export interface Review {
  dataset: string;
  price: string;
  said: Said | null;
  left_then: string | null;
  caution: string | null;
  key: string;
  same_as: SameAs;
}
export interface Run {
  run: string;
  what: string;
  state: "running" | "done" | "failed" | "stopped" | "looked";
  doing: string;
  part: number | null;
  error: Told | null;
  warnings: string[];
  stopping: boolean;
  paid: boolean;
  file?: string | null;
  line?: string;
  left?: string | null;
  failures?: string[];
  charge?: number;
  rest?: string;
}
export interface Page {
  dataset: string;
  model: string;
  charges: number;
  said: Said;
}
export interface Ledger {
  ledger: string;
  pages: Page[];
  charges: {
    charge: number;
    dataset: string;
    what: string;
    time: string;
    said: string;
    file: string | null;
    here: boolean;
    released: boolean;
  }[];
  changes: {
    dataset: string;
    changed: string;
    time: string;
    who: string;
    why: string | null;
    said: { old: string | null; new: string };
  }[];
  recoverable: {
    charge: number;
    dataset: string;
    what: string;
    price: string;
    state: string;
    running: boolean;
    free: boolean;
    possible: boolean;
    rest: string | null;
    same_as: SameAs;
  }[];
  same_as: SameAs;
}
export interface Facts {
  file?: string;
  kind: string;
  dataset: string;
  price: string;
  method: string;
  line: string;
  statement: string;
  cells: number;
  slots: string[];
  total: { best_guess: number; stddev: number; low: number; high: number } | null;
  estimand: Estimand | null;
  outside: string | null;
  exports: string[];
  same_as?: SameAs;
}
export interface Comparison {
  maps: Facts[];
  picture: string;
  files: string[];
  same_as: SameAs;
}
export type Order = Record<string, string | number | boolean | string[] | number[]>;

export interface Devices {
  enrolled: number;
  recent: number;
}
export interface CampaignLine {
  name: string;
  state: string;
  reason: string;
  created: string;
  ended: string | null;
}
export interface Campaigns {
  server: string;
  campaigns: CampaignLine[];
  devices: Devices;
  same_as: SameAs;
}
export interface Count {
  said: string;
  number: number;
}
export interface Turnout {
  survivors: number;
  shards: Count[];
  attempts: number;
  lost: string[];
  dropped: Count[];
  refusals: Count[];
  culprits: number;
}
export interface CampaignRound extends Turnout {
  round: number;
  answered: boolean;
  cells: number | null;
  price: string | null;
  stddev: number | null;
}
export interface Campaign extends CampaignLine {
  purpose: string;
  dataset: string;
  method: string;
  trust: string;
  price: string;
  spent: number;
  people: number;
  shards: number;
  sampling: string;
  mode: string;
  missing: number;
  asking: number | null;
  rounds: CampaignRound[];
  running: {
    round: number;
    shard: number;
    attempt: number;
    clients: number;
    waiting: number;
    stage: string;
    until: string;
  }[];
  devices: Devices;
  same_as: Record<"watch" | CampaignAct, SameAs>;
}
export type CampaignAct = "stop" | "resume" | "release-partial";
export interface CampaignForm {
  order: Record<string, string | number>;
  map: Record<string, string | string[]>;
}
export interface CampaignReview {
  name: string;
  purpose: string;
  dataset: string;
  price: string;
  people: number;
  shards: number;
  assumed: string[];
  cautions: string[];
  same_as: SameAs;
}
export interface RecipeCheck {
  id: string;
  version: number;
  digest: string;
  analysis: string;
  price: string;
  kept: boolean;
  bins: number;
  lines: string[];
  words: string[];
  answered: boolean | null;
  same_as: SameAs;
}
export interface StudyRound {
  round: number;
  recipe: string;
  price: string;
  state: string;
  reason: string;
  created: string;
  ended: string | null;
  survivors: number;
  refusals: Count[];
  lost: string[];
}
export interface StudyBudget {
  price: string;
  reports: number;
}
export interface Study {
  name: string;
  analysis: string;
  state: string;
  reason: string;
  created: string;
  stopped: string | null;
  budget: StudyBudget;
  left: StudyBudget;
  people: number;
  trust: string;
  assumptions: string[];
  rounds: StudyRound[];
  same_as: Record<"status" | "stop", SameAs>;
}
export interface Counted {
  count: number;
  standard_error: number;
  low: number;
  high: number;
}
export interface StudyTable {
  features: string[];
  lines: (Counted & { labels: string[] })[];
  more: number;
  people: number;
  confidence: number;
  none: Counted | null;
  promise: string[];
}
export interface StudyAnswer extends StudyRound {
  table: StudyTable | null;
  left: StudyBudget | null;
  same_as: SameAs;
}
export interface StudyReview {
  name: string;
  analysis: string;
  people: number;
  reports: number;
  price: string;
  assumed: string[];
  same_as: SameAs;
}
export interface ChartPoint {
  epsilon: number;
  mean: number;
  low: number;
  high: number;
  mean_said: string;
  low_said: string;
  high_said: string;
  number: number;
}
export interface Chart {
  score: string;
  methods: { name: string; points: ChartPoint[] }[];
}
export interface Figures {
  folder: string;
  maps: { map: string; scores: Chart[] }[];
}
export interface Device {
  device: string;
  enrolled: string;
  expires: string | null;
  revoked: string | null;
  silent: number | null;
}
export interface Health {
  url: string;
  well: boolean;
  milliseconds: number | null;
  sentence: Sentence;
  words: Record<string, string>;
  more: string;
  tasks: { task: string; waiting: number; jobs: number; batches: number; counted: number; rejected: number }[] | null;
}

/** What went wrong; without what the server told of it, in the reader's language already. */
export class Problem extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly told: Told | null = null,
  ) {
    super(message);
  }
}

async function ask(method: string, path: string, data?: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { "X-Hazemap-Key": localStorage.getItem(KEY) ?? "" };
  const file = data instanceof File;
  const body = data === undefined ? null : file ? data : JSON.stringify(data);
  if (body !== null) headers["Content-Type"] = file ? "application/octet-stream" : "application/json";
  if (file) headers["X-Hazemap-Name"] = encodeURIComponent(data.name);
  let found: Response;
  try {
    found = await fetch(path, { method, headers, body, signal: signal ?? null, credentials: "same-origin" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(say("lost"), 0);
  }
  if (found.ok) return found;
  const told = (await found.json().catch(() => null)) as { error?: Told } | null;
  throw new Problem(told?.error?.message ?? say("lost"), found.status, told?.error ?? null);
}

async function post<T>(path: string, data: unknown = {}, signal?: AbortSignal): Promise<T> {
  return (await (await ask("POST", path, data, signal)).json()) as T;
}

async function get<T>(path: string): Promise<T> {
  return (await (await ask("GET", path)).json()) as T;
}

export interface Who {
  name: string;
  root: string;
  server: string | null;
  version: string;
}

export const server = {
  async signIn(secret: { link: string } | { token: string }): Promise<void> {
    const { key } = await post<{ key: string }>("/v1/session", secret);
    localStorage.setItem(KEY, key);
  },
  async signOut(): Promise<void> {
    await ask("DELETE", "/v1/session").catch(() => undefined);
    localStorage.removeItem(KEY);
  },
  async newLink(): Promise<void> {
    await ask("POST", "/v1/link", {});
  },
  who: () => get<Who>("/v1/session"),
  files: (folder: string) => post<Folder>("/v1/files", { folder }),
  table: (source: string) => post<Preview>("/v1/table", { source }),
  plan: (form: object, signal?: AbortSignal) => post<Plan>("/v1/plan", form, signal),
  planValues: (form: object, signal?: AbortSignal) => post<ValuesPlan>("/v1/plan", form, signal),
  planPicture: (form: object, signal?: AbortSignal) => post<PlanPicture>("/v1/plan/picture", form, signal),
  review: (order: Order) => post<Review>("/v1/review", order),
  release: (order: Order, key: string) => post<Run>("/v1/releases", { order, key }),
  run: (name: string) => get<Run>(`/v1/runs/${encodeURIComponent(name)}`),
  stop: (name: string) => post<Run>(`/v1/runs/${encodeURIComponent(name)}/stop`),
  runs: async () => (await get<{ runs: Run[] }>("/v1/runs")).runs,
  ledger: (dataset = "") => post<Ledger>("/v1/ledger", { dataset }),
  recover: (charge: number, goOn = false) => post<Run>("/v1/recover", { charge, go_on: goOn }),
  map: (file: string) => post<Facts>("/v1/map", { file }),
  picture: async (file: string) => (await ask("POST", "/v1/map/picture", { file })).blob(),
  page: async (file: string) => (await post<{ url: string }>("/v1/map/page", { file })).url,
  save: (file: string, ending: string) =>
    post<{ url: string; name: string; same_as: SameAs }>("/v1/map/export", { file, ending }),
  difference: (first: string, second: string) =>
    post<{ url: string; summary: { changed: number; cells: number }; same_as: SameAs }>("/v1/difference", {
      first,
      second,
    }),
  compare: (first: string, second: string) => post<Comparison>("/v1/compare", { first, second }),
  campaigns: () => get<Campaigns>("/v1/campaigns"),
  devices: () => get<{ devices: Device[]; same_as: SameAs }>("/v1/devices"),
  aggregators: async () => (await get<{ aggregators: Health[] }>("/v1/aggregators")).aggregators,
  campaign: (name: string) => post<Campaign>("/v1/campaign", { name }),
  campaignMap: async (name: string) => (await ask("POST", "/v1/campaign/map", { name })).blob(),
  reviewCampaign: (form: CampaignForm) => post<CampaignReview>("/v1/campaign/review", form),
  orderCampaign: (form: CampaignForm) => post<{ name: string }>("/v1/campaign/order", form),
  tellCampaign: async (name: string, act: CampaignAct) => {
    await ask("POST", "/v1/campaign/act", { name, act });
  },
  fetchCampaign: (name: string, file: string) =>
    post<{ file: string; same_as: SameAs }>("/v1/campaign/fetch", { name, file }),
  exampleRecipe: async () => (await get<{ text: string }>("/v1/recipe")).text,
  openRecipe: async (file: string) => (await post<{ text: string }>("/v1/recipe/open", { file })).text,
  saveRecipe: (file: string, text: string) => post<{ file: string }>("/v1/recipe/save", { file, text }),
  checkRecipe: (form: object) => post<RecipeCheck>("/v1/recipe/check", form),
  studies: () => get<{ server: string; studies: string[] }>("/v1/studies"),
  study: (name: string) => post<Study>("/v1/study", { name }),
  reviewStudy: (form: object) => post<StudyReview>("/v1/study/review", form),
  beginStudy: (form: object) => post<{ name: string }>("/v1/study/begin", form),
  askStudy: (name: string, text: string, file: string) =>
    post<{ round: number; same_as: SameAs }>("/v1/study/ask", { name, text, file }),
  answerOf: (name: string, round: number) => post<StudyAnswer>("/v1/study/answer", { name, round }),
  releaseStudy: (name: string, file: string) =>
    post<{ file: string; same_as: SameAs }>("/v1/study/release", { name, file }),
  stopStudy: async (name: string) => {
    await ask("POST", "/v1/study/stop", { name });
  },
  comparisons: () => get<{ maps: { name: string; what: string }[]; methods: string[] }>("/v1/comparisons"),
  compareMethods: (form: object) => post<Run & { same_as: SameAs }>("/v1/comparison/run", form),
  figuresOf: (folder: string) => post<Figures>("/v1/comparison/figures", { folder }),
  ownMap: async (file: File) =>
    (await (await ask("POST", "/v1/comparison/map", file)).json()) as { file: string; people: number },
};
