import { InputError } from "../../device/src/errors.js";
import type { Bytes } from "../../shared/src/bytes.js";
import { freshKey, seal, unseal } from "./sealed_box.js";

const [DATABASE, STORE, KEY] = ["hazemap-device", "kept", "key"];

/** The end of a request to IndexedDB. */
function asked<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** A browser's database of sealed records, for one origin and one person's profile. */
export class SealedDatabase {
  private constructor(
    private readonly database: IDBDatabase,
    private readonly key: CryptoKey,
  ) {}

  /** Opens it; the first time it is made, with a key of its own. */
  static async open(): Promise<SealedDatabase> {
    const opening = indexedDB.open(DATABASE, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    let database: IDBDatabase;
    try {
      database = await asked(opening);
    } catch {
      throw new InputError("this browser lets the page keep nothing: a private window, or a setting, may be why");
    }
    const found = await asked<unknown>(database.transaction(STORE).objectStore(STORE).get(KEY));
    if (found instanceof CryptoKey) return new SealedDatabase(database, found);
    const made = new SealedDatabase(database, await freshKey());
    await made.write(KEY, made.key);
    return made;
  }

  async get(name: string): Promise<Bytes | null> {
    const found = await asked<unknown>(this.database.transaction(STORE).objectStore(STORE).get(name));
    return found instanceof Uint8Array ? unseal(this.key, name, new Uint8Array(found)) : null;
  }

  async put(name: string, plain: Bytes): Promise<void> {
    await this.write(name, await seal(this.key, name, plain));
  }

  /** On the disk when this returns, as far as the browser promises it. */
  private write(name: string, value: unknown): Promise<void> {
    return new Promise((resolve, reject) => {
      const change = this.database.transaction(STORE, "readwrite", { durability: "strict" });
      change.objectStore(STORE).put(value, name);
      change.oncomplete = () => resolve();
      change.onabort = change.onerror = () =>
        reject(new InputError("this browser could not keep what the device must not forget"));
    });
  }
}
