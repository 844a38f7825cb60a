import { type Bytes, joined } from "../../shared/src/bytes.js";
import { InputError, Unreachable } from "./errors.js";

const LARGEST = 64 << 20;
const PATIENCE = 30_000;
const LONGEST_ORIGIN = 300;
/** What a browser is told: no cookies, no referrer, no cache, no other server. Node has none of these. */
const ALONE: RequestInit = {
  redirect: "manual",
  credentials: "omit",
  referrerPolicy: "no-referrer",
  cache: "no-store",
};
const PORTS: Readonly<Record<string, number>> = { http: 80, https: 443 };

export interface HttpReply {
  readonly status: number;
  /** Seconds that the server asks to be left alone. */
  readonly wait: number | null;
  /** What it says that its content is. */
  readonly kind: string;
  readonly content: Bytes;
}

/** The web origin of a server's address (RFC 6454): scheme, host and port in one spelling. */
export function originOf(address: string): string {
  const pattern = /^(https?):\/\/([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?(?:\/[!-~]*)?$/;
  const found = address.length <= LONGEST_ORIGIN ? pattern.exec(address.toLowerCase()) : null;
  if (!found) throw new InputError("a server's address is such as https://maps.example");
  const [, scheme, host, digits] = found;
  const port = Number(digits ?? 0);
  return port === 0 || port === PORTS[scheme!] ? `${scheme}://${host}` : `${scheme}://${host}:${port}`;
}

/** An address without a slash at its end; `InputError` unless it is HTTPS, or this machine. */
export function checkedAddress(address: string): string {
  const { protocol, hostname, search, hash } = new URL(originOf(address) && address);
  const here = hostname === "localhost" || hostname === "[::1]" || /^127(\.[0-9]+){3}$/.test(hostname);
  if (search || hash) throw new InputError("a server's address has no query and no fragment");
  if (protocol === "http:" && !here)
    throw new InputError("plain HTTP can be read and changed on its way: use https://");
  return address.replace(/\/+$/, "");
}

/** Requests to one server; no redirect is followed, and no answer above 64 MiB is read. */
export class HttpTransport {
  constructor(private readonly address: string) {}

  /** One request; `Unreachable` where there is no answer, or one that means: not now. */
  async send(
    method: "GET" | "POST",
    path: string,
    ticket: string | null,
    content?: Bytes,
    kind?: string,
  ): Promise<HttpReply> {
    const headers: Record<string, string> = { "Accept-Encoding": "gzip" };
    if (ticket) headers["Authorization"] = `Bearer ${ticket}`;
    if (kind) headers["Content-Type"] = kind;
    let response: Response;
    let body: Bytes;
    try {
      const request: RequestInit = { ...ALONE, method, headers, signal: AbortSignal.timeout(PATIENCE) };
      if (content) request.body = content;
      response = await fetch(this.address + path, request);
      body = await read(response);
    } catch (error) {
      if (error instanceof Unreachable) throw error;
      throw new Unreachable("the server cannot be reached");
    }
    const wait = seconds(response.headers.get("retry-after"));
    if (response.status === 429 || response.status >= 500) {
      throw new Unreachable(`the server is busy or broken (HTTP ${response.status})`, wait);
    }
    return { status: response.status, wait, kind: response.headers.get("content-type") ?? "", content: body };
  }

  async post(path: string, ticket: string | null, fields: object): Promise<HttpReply> {
    return this.send("POST", path, ticket, new TextEncoder().encode(JSON.stringify(fields)), "application/json");
  }
}

/** The content after decompression, counted as it comes. */
async function read(response: Response): Promise<Bytes> {
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  for (let read = await reader?.read(); read && !read.done; read = await reader!.read()) {
    size += read.value.length;
    if (size > LARGEST) {
      await reader!.cancel();
      throw new Unreachable(`the server's answer is larger than ${LARGEST} bytes`);
    }
    parts.push(read.value);
  }
  return joined(parts);
}

/** Retry-After as a number of seconds; a date, or anything else, is ignored. */
function seconds(text: string | null): number | null {
  return text !== null && /^[0-9]{1,9}(\.[0-9]{1,9})?$/.test(text) ? Number(text) : null;
}
