const NAME = "hazemap-device";

/**
 * Whether this tab is the device from now on, until it is closed. All tabs of this page in one browser profile share the
 * lock, as they share one store: two at a time would answer a stage twice.
 */
export function isOnlyTab(): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const held = navigator.locks.request(NAME, { ifAvailable: true }, (lock) => {
      resolve(lock !== null);
      return lock === null ? undefined : new Promise<never>(() => undefined);
    });
    held.catch(reject);
  });
}
