import assert from "node:assert/strict";
import { test } from "node:test";
import { ascii, hex, sha256, systemRandom, unhex } from "../../../shared/src/bytes.js";
import { Identity, verified } from "../ed25519.js";
import { challengeStatement, enrolmentStatement } from "../enrolment.js";
import { CodecError, Refused } from "../errors.js";
import {
  agreed,
  assentStatement,
  keysStatement,
  letterAddress,
  letterKey,
  maskedStatement,
  pairMask,
  ringCommitment,
  seal,
  sealingKey,
  seedCommitment,
  selfMask,
  unseal,
} from "../key_derivation.js";
import { addMask } from "../masks.js";
import { belongs } from "../merkle_roster.js";
import { decode } from "../messages.js";
import { pack, unpack } from "../modular_packing.js";
import { ringNeighbours } from "../neighbour_graph.js";
import { isShare } from "../prime_field.js";
import { share } from "../shamir_sharing.js";
import { agree, checkPublic, drawKeyPair, keyPair } from "../x25519.js";
import { vectors } from "./vectors.js";

const folder = "secure_aggregation";

test("keys, letters and commitments have the bytes of the vectors", async () => {
  const { session: name, agreement, self_mask, seed_commitment, letter, statements } = vectors(`${folder}/primitives`);
  const [session, own, theirs] = [unhex(name), await keyPair(unhex(agreement.private)), unhex(agreement.their_public)];
  assert.equal(hex(own.public), agreement.public);
  assert.equal(hex(await agree(own, theirs)), agreement.point);
  assert.equal(hex(await letterKey(session, own, theirs)), agreement.letter_key);
  assert.equal(hex(await pairMask(session, own, theirs, unhex(statements.sharers))), agreement.mask_key);
  assert.equal(hex(await selfMask(session, unhex(self_mask.seed))), self_mask.key);
  assert.equal((await agreed(session, own, theirs, ascii("other"), 40)).length, 40);
  const { position, seed, commitment } = seed_commitment;
  assert.equal(hex(await seedCommitment(session, position, unhex(seed))), commitment);
  const address = letterAddress(session, letter.sender, letter.receiver);
  assert.equal(hex(address), letter.address);
  const key = unhex(agreement.letter_key);
  assert.equal(hex(await sealingKey(key, address)), letter.sealing_key);
  const sealed = await seal(key, address, unhex(letter.plain));
  assert.equal(hex(sealed), letter.sealed);
  assert.equal(hex((await unseal(key, address, sealed))!), letter.plain);
  sealed[0]! ^= 1;
  assert.equal(await unseal(key, address, sealed), null);
  const [sharers, survivors] = [unhex(statements.sharers), unhex(statements.survivors)];
  assert.equal(hex(await maskedStatement(session, statements.position, sharers)), statements.masked);
  assert.equal(hex(await assentStatement(session, statements.position, sharers, survivors)), statements.assent);
  const start = hex(keysStatement(session, statements.position, new Uint8Array(0)));
  assert.ok(statements.keys.startsWith(start));
});

test("masks are the words of the vectors, and taking one away undoes adding it", async () => {
  for (const { key, words, first, 19990: late } of vectors(`${folder}/primitives`).masks) {
    const bits = words === "uint16" ? 16 : 32;
    const vector = new Uint32Array(20_000);
    await addMask(vector, unhex(key), bits, 1);
    assert.deepEqual([...vector.slice(0, 8)], first);
    assert.deepEqual([...vector.slice(19_990)], late);
    await addMask(vector, unhex(key), bits, -1);
    assert.ok(vector.every((word) => word === 0));
    await addMask(vector, unhex(key), bits, 1, 1_000);
    assert.deepEqual(
      [...vector.slice(0, 8), ...vector.slice(19_990)],
      [...first, ...late],
      "in parts it is the same mask",
    );
  }
});

test("a key of low order is refused, and a malformed identity or signature signed nothing", async () => {
  const own = await drawKeyPair(systemRandom);
  for (const low of ["00".repeat(32), `01${"00".repeat(31)}`]) await assert.rejects(agree(own, unhex(low)), Refused);
  assert.throws(() => checkPublic(unhex("ff".repeat(32))), CodecError);
  const [identity, statement] = [await Identity.of(systemRandom(32)), Uint8Array.of(1, 2, 3)];
  const signature = await identity.sign(statement);
  assert.ok(await verified(identity.public, signature, statement));
  const none = new Uint8Array(0);
  for (const [key, signed] of [
    [none, signature],
    [new Uint8Array(32).fill(255), signature],
    [identity.public, none],
  ] as const) {
    assert.ok(!(await verified(key, signed, statement)));
  }
  assert.ok(!(await verified(identity.public, signature, Uint8Array.of(1, 2))));
});

test("as many random bytes come as were asked for, however many", () => {
  assert.equal(systemRandom(0).length, 0);
  const bytes = systemRandom(200_000);
  // A byte of a place is 0 with probability 1/256: a part that was left out would be all zeros.
  for (let at = 0; at < bytes.length; at += 1_000) assert.ok(bytes.subarray(at, at + 1_000).some(Boolean));
});

test("shares are those of the vectors, and what is no share is none", () => {
  const { secret, coefficients, shares, not_shares } = vectors(`${folder}/sharing`);
  const numbers = coefficients.map((each: string) => BigInt(`0x${each}`));
  for (const [point, value] of Object.entries(shares))
    assert.equal(hex(share(unhex(secret), numbers, Number(point))), value);
  for (const bytes of not_shares) assert.ok(!isShare(unhex(bytes)));
});

test("vectors are packed as in the vectors, and other bytes are refused", () => {
  for (const { bits, words, packed, refused } of vectors(`${folder}/packing`)) {
    assert.equal(hex(pack(Uint32Array.from(words), bits)), packed);
    assert.deepEqual([...unpack(unhex(packed), words.length, bits)], words);
    for (const bytes of refused) assert.throws(() => unpack(unhex(bytes), words.length, bits), CodecError);
  }
});

test("a proof shows an identity at its position and at no other", async () => {
  for (const { identities, root, proofs } of vectors(`${folder}/rosters`)) {
    const paths = proofs.map((proof: string[]) => proof.map(unhex));
    for (const [at, identity] of (identities as string[]).entries()) {
      for (let position = 0; position < identities.length + 2; position++) {
        assert.equal(
          await belongs(unhex(root), identities.length, position, unhex(identity), paths[at]),
          position === at,
        );
      }
      assert.ok(!(await belongs(unhex(root), identities.length, at, unhex(identity), [...paths[at], unhex(root)])));
    }
  }
});

test("rings are those of the vectors", async () => {
  const { seed, commitment, members, rings } = vectors(`${folder}/graphs`);
  assert.equal(hex(await ringCommitment(unhex(seed))), commitment);
  for (const { degree, neighbours } of rings) {
    for (const [at, own] of (members as number[]).entries()) {
      assert.deepEqual(await ringNeighbours(unhex(seed), members, degree, own), neighbours[at]);
    }
  }
});

test("the enrolment's statements and signatures are those of the vectors", async () => {
  const found = vectors(`${folder}/enrolment`);
  const [device, server] = [
    await Identity.of(unhex(found.device.private)),
    await Identity.of(unhex(found.server.private)),
  ];
  const challenge = unhex(found.challenge);
  const asked = challengeStatement(found.origin, device.public, challenge);
  assert.equal(hex(asked), found.challenge_statement);
  assert.ok(await verified(server.public, unhex(found.challenge_signature), asked));
  const statement = enrolmentStatement(found.origin, server.public, challenge, device.public, found.token);
  assert.equal(hex(statement), found.enrolment_statement);
  assert.equal(hex(await device.sign(statement)), found.enrolment_signature);
});

test("what every decoder refuses is refused", async () => {
  for (const { why, bytes } of vectors(`${folder}/refused`)) assert.throws(() => decode(unhex(bytes)), CodecError, why);
  assert.equal((await sha256(new Uint8Array(0))).length, 32);
});
