import assert from "node:assert/strict";
import { test } from "node:test";
import { hex, sha256, unhex } from "../bytes.js";
import { Identity, verified } from "../ed25519.js";
import { challengeStatement, enrolmentStatement } from "../enrolment.js";
import { CodecError } from "../errors.js";
import {
  agreed, assentStatement, keysStatement, letterAddress, letterKey, maskedStatement, pairMask, ringCommitment, seal,
  sealingKey, seedCommitment, selfMask, unseal,
} from "../key_derivation.js";
import { addMask } from "../masks.js";
import { belongs } from "../merkle_roster.js";
import { decode } from "../messages.js";
import { pack, unpack } from "../modular_packing.js";
import { ringNeighbours } from "../neighbour_graph.js";
import { isShare } from "../prime_field.js";
import { share } from "../shamir_sharing.js";
import { agree, keyPair } from "../x25519.js";
import { vectors } from "./vectors.js";

const folder = "secure_aggregation";

test("keys, letters and commitments have the bytes of the vectors", () => {
  const { session: name, agreement, self_mask, seed_commitment, letter, statements } = vectors(`${folder}/primitives`);
  const [session, own, theirs] = [unhex(name), keyPair(unhex(agreement.private)), unhex(agreement.their_public)];
  assert.equal(hex(own.public), agreement.public);
  assert.equal(hex(agree(own.private, theirs)), agreement.point);
  assert.equal(hex(letterKey(session, own, theirs)), agreement.letter_key);
  assert.equal(hex(pairMask(session, own, theirs)), agreement.mask_key);
  assert.equal(hex(selfMask(session, unhex(self_mask.seed))), self_mask.key);
  assert.equal(agreed(session, own, theirs, "other", 40).length, 40);
  const { position, seed, commitment } = seed_commitment;
  assert.equal(hex(seedCommitment(session, position, unhex(seed))), commitment);
  const address = letterAddress(session, letter.sender, letter.receiver);
  assert.equal(hex(address), letter.address);
  const key = unhex(agreement.letter_key);
  assert.equal(hex(sealingKey(key, address)), letter.sealing_key);
  const sealed = seal(key, address, unhex(letter.plain));
  assert.equal(hex(sealed), letter.sealed);
  assert.equal(hex(unseal(key, address, sealed)!), letter.plain);
  sealed[0]! ^= 1;
  assert.equal(unseal(key, address, sealed), null);
  const [sharers, survivors] = [unhex(statements.sharers), unhex(statements.survivors)];
  assert.equal(hex(maskedStatement(session, statements.position, sharers)), statements.masked);
  assert.equal(hex(assentStatement(session, statements.position, sharers, survivors)), statements.assent);
  const start = hex(keysStatement(session, statements.position, new Uint8Array(0)));
  assert.ok(statements.keys.startsWith(start));
});

test("masks are the words of the vectors, and taking one away undoes adding it", () => {
  for (const { key, words, first, 19990: late } of vectors(`${folder}/primitives`).masks) {
    const bits = words === "uint16" ? 16 : 32;
    const vector = new Uint32Array(20_000);
    addMask(vector, unhex(key), bits, 1);
    assert.deepEqual([...vector.slice(0, 8)], first);
    assert.deepEqual([...vector.slice(19_990)], late);
    addMask(vector, unhex(key), bits, -1);
    assert.ok(vector.every((word) => word === 0));
  }
});

test("shares are those of the vectors, and what is no share is none", () => {
  const { secret, coefficients, shares, not_shares } = vectors(`${folder}/sharing`);
  const numbers = coefficients.map((each: string) => BigInt(`0x${each}`));
  for (const [point, value] of Object.entries(shares)) assert.equal(hex(share(unhex(secret), numbers, Number(point))), value);
  for (const bytes of not_shares) assert.ok(!isShare(unhex(bytes)));
});

test("vectors are packed as in the vectors, and other bytes are refused", () => {
  for (const { bits, words, packed, refused } of vectors(`${folder}/packing`)) {
    assert.equal(hex(pack(Uint32Array.from(words), bits)), packed);
    assert.deepEqual([...unpack(unhex(packed), words.length, bits)], words);
    for (const bytes of refused) assert.throws(() => unpack(unhex(bytes), words.length, bits), CodecError);
  }
});

test("a proof shows an identity at its position and at no other", () => {
  for (const { identities, root, proofs } of vectors(`${folder}/rosters`)) {
    const paths = proofs.map((proof: string[]) => proof.map(unhex));
    identities.forEach((identity: string, at: number) => {
      for (let position = 0; position < identities.length + 2; position++) {
        assert.equal(belongs(unhex(root), identities.length, position, unhex(identity), paths[at]), position === at);
      }
      assert.ok(!belongs(unhex(root), identities.length, at, unhex(identity), [...paths[at], unhex(root)]));
    });
  }
});

test("rings are those of the vectors", () => {
  const { seed, commitment, members, rings } = vectors(`${folder}/graphs`);
  assert.equal(hex(ringCommitment(unhex(seed))), commitment);
  for (const { degree, neighbours } of rings) {
    members.forEach((own: number, at: number) => {
      assert.deepEqual(ringNeighbours(unhex(seed), members, degree, own), neighbours[at]);
    });
  }
});

test("the enrolment's statements and signatures are those of the vectors", () => {
  const found = vectors(`${folder}/enrolment`);
  const [device, server] = [new Identity(unhex(found.device.private)), new Identity(unhex(found.server.private))];
  const challenge = unhex(found.challenge);
  const asked = challengeStatement(found.origin, device.public, challenge);
  assert.equal(hex(asked), found.challenge_statement);
  assert.ok(verified(server.public, unhex(found.challenge_signature), asked));
  const statement = enrolmentStatement(found.origin, server.public, challenge, device.public, found.token);
  assert.equal(hex(statement), found.enrolment_statement);
  assert.equal(hex(device.sign(statement)), found.enrolment_signature);
});

test("what every decoder refuses is refused", () => {
  for (const { why, bytes } of vectors(`${folder}/refused`)) assert.throws(() => decode(unhex(bytes)), CodecError, why);
  assert.equal(sha256(new Uint8Array(0)).length, 32);
});
