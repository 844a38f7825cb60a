import { Refused } from "./errors.js";
import { Fraction, floorOf } from "./fraction.js";
import { MOST_IN_A_SESSION, together, weakness } from "./graph_degree.js";
import { MALICIOUS, type Mode, type SessionParameters } from "./session_parameters.js";

/** The least protection under which a device takes part, whatever a task says. */
export interface MinimumParameters {
  readonly clients: number;
  readonly survivors: number;
  readonly corrupt: Fraction;
  readonly longest: number;
  readonly modes: readonly Mode[];
}

const named = (mode: Mode): string => (mode === MALICIOUS ? "malicious" : "semi-honest");

/** `Refused`, with the reason, if the terms of a session fall short. No noise is needed where vectors are `randomised` reports. */
export function checkMinimum(least: MinimumParameters, terms: SessionParameters, randomised = false): void {
  const { mode, clients, degree, threshold, survivors } = terms;
  if (!least.modes.includes(mode)) {
    throw new Refused(
      `this client takes part in ${least.modes.map(named).join(" and ")} sessions, not in ${named(mode)} ones`,
    );
  }
  if (clients < least.clients)
    throw new Refused(`a session of ${clients} clients is too small: at least ${least.clients} must be invited`);
  if (clients > MOST_IN_A_SESSION)
    throw new Refused(`a session of ${clients} clients is too large: at most ${MOST_IN_A_SESSION} may be invited`);
  if (survivors < least.survivors) {
    throw new Refused(`a sum over ${survivors} clients is too small: at least ${least.survivors} must be in it`);
  }
  if (terms.size > least.longest)
    throw new Refused(`a vector of ${terms.size} numbers is too long: at most ${least.longest} are sent`);
  const dropout = new Fraction(clients - survivors, clients);
  const reason = weakness(clients, degree, threshold, least.corrupt, dropout, mode);
  if (reason) throw new Refused(`${reason}, if ${least.corrupt} of the clients work with the server`);
  if (terms.scale.numerator === 0n && !randomised)
    throw new Refused("no noise is to be added, but what this device sends is not randomised");
  let honest = survivors - floorOf(clients, least.corrupt);
  if (mode === MALICIOUS) honest = Math.min(honest, together(clients, degree, threshold, least.corrupt, dropout));
  if (terms.parties > honest) {
    throw new Refused(
      `the noise is complete with ${terms.parties} clients, but only ${honest} honest ones are certain to be in a sum`,
    );
  }
}
