import { type Bytes, equal, hex, join, type RandomBytes, sha256, uint32 } from "../../shared/src/bytes.js";
import type { ClientState, KnownPeer } from "./client_state.js";
import type { Coins } from "./coins.js";
import { type Identity, verified } from "./ed25519.js";
import { Refused } from "./errors.js";
import {
  assentStatement,
  keysStatement,
  letterAddress,
  letterKey,
  maskedStatement,
  pairMask,
  ringCommitment,
  seal,
  seedCommitment,
  selfMask,
  unseal,
} from "./key_derivation.js";
import { addMask } from "./masks.js";
import { belongs } from "./merkle_roster.js";
import {
  type Down,
  decode,
  encodeAssent,
  encodeKeys,
  encodeMasked,
  encodePicks,
  encodeSealed,
  encodeUnmask,
  type Peer,
} from "./messages.js";
import { pack } from "./modular_packing.js";
import { drawnNeighbours, ringNeighbours } from "./neighbour_graph.js";
import { isShare, SHARE } from "./prime_field.js";
import { MALICIOUS, SEMI_HONEST, type SessionParameters, sessionOf } from "./session_parameters.js";
import { drawCoefficients, share } from "./shamir_sharing.js";
import { Bitmap } from "./tls_encoding.js";
import { keyPair } from "./x25519.js";

type Of<K extends Down["kind"]> = Extract<Down, { kind: K }>;

/**
 * What a client draws, as it follows from the session, its contribution (`said`, SHA-256) and the message that it answers
 * (`asked`): tests give what vectors have.
 */
export interface Draws {
  /** Private sealing key, private masking key, seed. */
  secrets(session: Bytes, position: number, said: Bytes): Promise<readonly [Bytes, Bytes, Bytes]>;
  /** Of the masking key and of the seed. */
  polynomials(session: Bytes, asked: Bytes, said: Bytes, threshold: number): Promise<readonly (readonly bigint[])[]>;
  neighbours(
    session: Bytes,
    asked: Bytes,
    said: Bytes,
    members: readonly number[],
    own: number,
    degree: number,
  ): Promise<number[]>;
  noise(session: Bytes, said: Bytes): Promise<RandomBytes>;
}

export const drawsFrom = (coins: Coins): Draws => ({
  secrets: async (session, position, said) => {
    const drawn = (await coins(session, "keys", uint32(position), said))(96);
    return [drawn.slice(0, 32), drawn.slice(32, 64), drawn.slice(64)];
  },
  polynomials: async (session, asked, said, threshold) => {
    const random = await coins(session, "shares", asked, said);
    return [drawCoefficients(random, threshold), drawCoefficients(random, threshold)];
  },
  neighbours: async (session, asked, said, members, own, degree) =>
    drawnNeighbours(await coins(session, "picks", asked, said), members, own, degree),
  noise: (session, said) => coins(session, "noise", said),
});

/** Whose client it is. Whatever goes wrong with rows, there is a contribution: nothing is refused that depends on one. */
export interface ClientOwner {
  readonly identity: Identity;
  readonly draws: Draws;
  /** `Refused` for terms that its person does not agree to. */
  check(terms: SessionParameters): void;
  /** Modulo 2^bits; asked for once, with the invitation, when everything else was checked. */
  contribution(terms: SessionParameters): Promise<Uint32Array>;
  /** Charges for the vector; `Refused` where it cannot be paid. */
  pay(terms: SessionParameters, sums: Uint32Array): Promise<void>;
  /** Contribution + noise modulo 2^bits. */
  noisy(sums: Uint32Array, terms: SessionParameters, random: RandomBytes): Uint32Array;
}

const NAMES = ["", "KEYS", "PICKS", "SHARES", "MASKED", "ASSENT", "UNMASK"];

/**
 * The state after a message, with the one reply to it: store it, then send `reply`. The same message again gives the
 * same state. `Refused` or `CodecError` for any other; then nothing changes. `state` is null before an invitation.
 */
export async function answer(state: ClientState | null, message: Bytes, owner: ClientOwner): Promise<ClientState> {
  const asked = await sha256(message);
  if (state && equal(asked, state.asked)) return state;
  const found = decode(message);
  if (!("stage" in found)) throw new Refused(`${found.kind} is what a client says, not a server`);
  if (!state) {
    if (found.kind !== "Invitation") throw new Refused(`${found.kind} came before an invitation`);
    return { ...(await keys(found, owner)), asked };
  }
  const session = found.kind === "Invitation" ? await sessionOf(found.terms) : found.session;
  if (!equal(session, await sessionOf(state.terms))) throw new Refused(`${found.kind} belongs to another session`);
  const due = state.stage === 1 && state.terms.mode === SEMI_HONEST ? 3 : state.stage + 1;
  if (found.stage < due)
    throw new Refused(`${NAMES[found.stage]} is asked a second time, otherwise: a stage has one answer`);
  if (found.stage > due) throw new Refused(`${NAMES[found.stage]} is asked before ${NAMES[due]}`);
  const next = { ...state, ...(await step(state, found, session, owner, asked)) };
  return { ...next, stage: due, asked };
}

type Step = Partial<ClientState> & Pick<ClientState, "reply">;

async function step(
  state: ClientState,
  message: Down,
  session: Bytes,
  owner: ClientOwner,
  asked: Bytes,
): Promise<Step> {
  switch (message.kind) {
    case "Roll":
      return picks(state, message, session, owner, asked);
    case "Neighbours":
      return shares(state, message, session, owner, asked);
    case "Inbox":
      return masked(state, message, session, owner);
    case "Survivors":
      return assent(state, message, session, owner);
    case "Assents":
      return unmask(state, message, session);
    case "Invitation":
      throw new Refused("an invitation comes first");
  }
}

async function keys(message: Of<"Invitation">, owner: ClientOwner): Promise<Omit<ClientState, "asked">> {
  const { terms, position, proof } = message;
  owner.check(terms);
  if (!(await belongs(terms.roster, terms.clients, position, owner.identity.public, proof))) {
    throw new Refused(`this client's identity is not at position ${position} of the roster`);
  }
  const session = await sessionOf(terms);
  const sums = await owner.contribution(terms); // everything else was checked
  const said = await sha256(pack(sums, terms.bits));
  const [first, second, seed] = await owner.draws.secrets(session, position, said);
  const [sealing, masking] = [await keyPair(first), await keyPair(second)];
  const commitment = await seedCommitment(session, position, seed);
  const signature = await owner.identity.sign(
    keysStatement(session, position, join(sealing.public, masking.public, commitment)),
  );
  return {
    stage: 1,
    reply: encodeKeys(session, { sealing: sealing.public, masking: masking.public, commitment, signature }),
    terms,
    position,
    sealing: sealing.private,
    masking: masking.private,
    seed,
    said,
    contribution: [...sums.keys()].filter((at) => sums[at]).map((at) => [at, sums[at]!]),
    roll: null,
    picks: null,
    peers: [],
    shares: new Map(),
    sharers: null,
    survivors: null,
  };
}

/** Refuse a list of clients that is of another session, without this client, or of too few. */
function listed(some: Bitmap, { terms, position }: ClientState, what: string): number[] {
  if (some.size !== terms.clients)
    throw new Refused(`the list of clients that ${what} has another size than the session`);
  const positions = some.positions();
  if (!some.has(position)) throw new Refused(`this client is not on the list of clients that ${what}`);
  if (positions.length < terms.survivors) {
    throw new Refused(`only ${positions.length} clients ${what}, fewer than the ${terms.survivors} that must survive`);
  }
  return positions;
}

async function picks(
  state: ClientState,
  message: Of<"Roll">,
  session: Bytes,
  owner: ClientOwner,
  asked: Bytes,
): Promise<Step> {
  const members = listed(message.roll, state, "have sent keys");
  const drawn = await owner.draws.neighbours(session, asked, state.said!, members, state.position, state.terms.degree);
  return { reply: encodePicks(session, drawn), roll: message.roll.bits, picks: drawn };
}

async function shares(
  state: ClientState,
  message: Of<"Neighbours">,
  session: Bytes,
  owner: ClientOwner,
  asked: Bytes,
): Promise<Step> {
  const { terms, position: own } = state;
  listed(message.roll, state, "have sent keys");
  const holders = new Set(await holdersOf(state, message));
  const [sealing, masking] = [await keyPair(state.sealing!), await keyPair(state.masking!)];
  checkDistinct([owner.identity.public, sealing.public, masking.public], message.peers);
  const peers: KnownPeer[] = [];
  for (const peer of message.peers) {
    await checkPeer(terms, session, peer);
    const { position, identity, keys } = peer;
    const letter = await letterKey(session, sealing, keys.sealing);
    const holds = holders.has(position);
    peers.push({ position, identity, holds, deals: !holds, letter, masking: keys.masking });
  }
  const [forKey, forSeed] = await owner.draws.polynomials(session, asked, state.said!, terms.threshold);
  const letters = new Map<number, Bytes>();
  for (const peer of peers.filter(({ holds }) => holds)) {
    const x = peer.position + 1;
    const plain = join(share(masking.private, forKey!, x), share(state.seed!, forSeed!, x));
    letters.set(peer.position, await seal(peer.letter!, letterAddress(session, own, peer.position), plain));
  }
  return { reply: encodeSealed(session, letters), roll: message.roll.bits, picks: null, sealing: null, peers };
}

/** The holders of this client's shares; `Refused` unless the neighbours are its own. */
async function holdersOf(
  { terms, position, roll, picks: drawn }: ClientState,
  message: Of<"Neighbours">,
): Promise<readonly number[]> {
  const known = new Set(message.peers.map((peer) => peer.position));
  if (known.has(position)) throw new Refused("this client was presented as its own neighbour");
  if (![...known].every((peer) => message.roll.has(peer)))
    throw new Refused("a neighbour was presented that has sent no keys");
  let holders: readonly number[];
  if (terms.mode === MALICIOUS) {
    if (!roll || !drawn || !equal(roll, message.roll.bits)) {
      throw new Refused("the roll is not the one that neighbours were drawn from");
    }
    holders = drawn;
    if (message.seed.some(Boolean) || !holders.every((holder) => known.has(holder))) {
      throw new Refused("the neighbours are not those that were drawn");
    }
    if (known.size - holders.length > 3 * terms.degree + 32) {
      throw new Refused(
        `the server says that ${known.size - holders.length} clients drew this one: no fair draw does that`,
      );
    }
  } else {
    if (!equal(await ringCommitment(message.seed), terms.graph)) {
      throw new Refused("the seed of the ring is not the one that was committed to");
    }
    holders = await ringNeighbours(message.seed, message.roll.positions(), terms.degree, position);
    if (known.size !== holders.length || !holders.every((holder) => known.has(holder))) {
      throw new Refused("the neighbours are not those on the ring");
    }
  }
  if (holders.length < terms.threshold) {
    throw new Refused(
      `${holders.length} neighbours are too few for shares of which ${terms.threshold} reveal a secret`,
    );
  }
  return holders;
}

async function checkPeer(
  terms: SessionParameters,
  session: Bytes,
  { position, identity, proof, keys }: Peer,
): Promise<void> {
  if (!(await belongs(terms.roster, terms.clients, position, identity, proof))) {
    throw new Refused(`the identity of client ${position} is not the one in the roster`);
  }
  const statement = keysStatement(session, position, join(keys.sealing, keys.masking, keys.commitment));
  if (!(await verified(identity, keys.signature, statement))) {
    throw new Refused(`the keys of client ${position} are not signed by it for this session`);
  }
}

/** Refuse two clients, this one included, that show the same identity or key. */
function checkDistinct(own: readonly Bytes[], peers: readonly Peer[]): void {
  const all = [...own, ...peers.flatMap(({ identity, keys }) => [identity, keys.sealing, keys.masking])];
  if (new Set(all.map(hex)).size !== all.length) {
    throw new Refused("two clients were presented with the same identity or key");
  }
}

async function masked(state: ClientState, message: Of<"Inbox">, session: Bytes, owner: ClientOwner): Promise<Step> {
  const { terms, position: own } = state;
  listed(message.sharers, state, "have shared");
  if (!message.sharers.within(new Bitmap(terms.clients, state.roll!))) {
    throw new Refused("a client is listed as having shared that has sent no keys");
  }
  const shared = state.peers.filter((peer) => message.sharers.has(peer.position));
  const among = new Set(shared.map((peer) => peer.position));
  const must = shared.filter((peer) => terms.mode === SEMI_HONEST || !peer.holds);
  if (
    !must.every((peer) => message.letters.has(peer.position)) ||
    ![...message.letters.keys()].every((p) => among.has(p))
  ) {
    throw new Refused("the letters are not those of the neighbours that have shared with this client");
  }
  const holders = shared.filter((peer) => peer.holds).length;
  if (holders < terms.threshold)
    throw new Refused(`${holders} of this client's holders have shared, fewer than ${terms.threshold}`);
  const found = new Map<number, Bytes>();
  for (const peer of shared) {
    const letter = message.letters.get(peer.position);
    const both = letter && (await unseal(peer.letter!, letterAddress(session, peer.position, own), letter));
    if (both && isShare(both.slice(0, SHARE)) && isShare(both.slice(SHARE))) found.set(peer.position, both);
  }
  const masking = await keyPair(state.masking!);
  const masks = new Map<number, Bytes>();
  for (const peer of shared)
    masks.set(peer.position, await pairMask(session, masking, peer.masking!, message.sharers.bits));
  const [, key, seed] = await owner.draws.secrets(session, own, state.said!);
  if (!equal(key, state.masking!) || !equal(seed, state.seed!)) {
    throw new Refused("this device has not the contribution that its first message committed to: it leaves");
  }
  const sums = new Uint32Array(terms.size);
  for (const [at, sum] of state.contribution!) sums[at] = sum;
  await owner.pay(terms, sums);
  const vector = owner.noisy(sums, terms, await owner.draws.noise(session, state.said!));
  await addMask(vector, await selfMask(session, state.seed!), terms.bits, 1);
  for (const [position, key] of masks) await addMask(vector, key, terms.bits, own < position ? 1 : -1);
  const signature = await owner.identity.sign(await maskedStatement(session, own, message.sharers.bits));
  const peers = state.peers.map((peer) => ({
    ...peer,
    deals: message.letters.has(peer.position),
    letter: null,
    masking: null,
  }));
  const reply = encodeMasked(session, pack(vector, terms.bits), signature);
  return {
    reply,
    masking: null,
    seed: null,
    said: null,
    contribution: null,
    roll: null,
    peers,
    shares: found,
    sharers: message.sharers.bits,
  };
}

async function assent(state: ClientState, message: Of<"Survivors">, session: Bytes, owner: ClientOwner): Promise<Step> {
  const { terms, position, sharers } = state;
  const { survivors } = message;
  listed(survivors, state, "have survived");
  if (!survivors.within(new Bitmap(terms.clients, sharers!))) {
    throw new Refused("a survivor is not among the clients that shared, as the server listed them before");
  }
  const holders = state.peers.filter((peer) => peer.holds && survivors.has(peer.position)).length;
  if (holders < terms.threshold) {
    throw new Refused(`${holders} of this client's holders survive, fewer than the threshold ${terms.threshold}`);
  }
  const signature = await owner.identity.sign(await assentStatement(session, position, sharers!, survivors.bits));
  return { reply: encodeAssent(session, signature), survivors: survivors.bits };
}

async function unmask(state: ClientState, message: Of<"Assents">, session: Bytes): Promise<Step> {
  const { terms, sharers } = state;
  const survivors = new Bitmap(terms.clients, state.survivors!);
  const known = new Map(
    state.peers.filter((peer) => survivors.has(peer.position)).map((peer) => [peer.position, peer]),
  );
  const ofHolders = [...message.assents.keys()].every((position) => known.get(position)?.holds);
  if (!ofHolders || ![...message.masked.keys()].every((position) => known.get(position)?.deals)) {
    throw new Refused("a signature was presented of a client that is no neighbour of this one, or did not survive");
  }
  if (message.assents.size < terms.threshold) {
    throw new Refused(`${message.assents.size} holders assent, fewer than the threshold ${terms.threshold}`);
  }
  for (const [position, signature] of [...message.assents].slice(0, terms.threshold)) {
    const statement = await assentStatement(session, position, sharers!, survivors.bits);
    if (!(await verified(known.get(position)!.identity, signature, statement))) {
      throw new Refused(`client ${position} did not assent to the survivors that this client assented to`);
    }
  }
  for (const position of terms.mode === MALICIOUS ? state.shares.keys() : []) {
    if (!known.has(position)) continue;
    const signature = message.masked.get(position) ?? new Uint8Array(0);
    const statement = await maskedStatement(session, position, sharers!);
    if (!(await verified(known.get(position)!.identity, signature, statement))) {
      throw new Refused(`client ${position} did not mask its vector among those that this client masked among`);
    }
  }
  const [seeds, keysOfGone] = [new Map<number, Bytes>(), new Map<number, Bytes>()];
  for (const [dealer, both] of state.shares) {
    if (survivors.has(dealer)) seeds.set(dealer, both.slice(SHARE));
    else keysOfGone.set(dealer, both.slice(0, SHARE));
  }
  return {
    reply: encodeUnmask(session, seeds, keysOfGone),
    shares: new Map(),
    peers: [],
    sharers: null,
    survivors: null,
  };
}
