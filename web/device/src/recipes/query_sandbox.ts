import type { Database, PreparedStatement, Sqlite3Static, SqlValue } from "@sqlite.org/sqlite-wasm";
import { Refused } from "../errors.js";
import type { Cell } from "./features.js";
import { byName, classRefusal, MOST_FIELDS, type QueryClass, type StreamSchema, typeOfValue } from "./query_class.js";
import { LONGEST_SQL, type SqlQuery } from "./sql_query.js";

/** SQLite in this page or program: opened once, when a recipe comes first. */
export type OpenSqlite = () => Promise<Sqlite3Static>;

/** The events of a stream, oldest first, with the values of these fields in this order. */
export type EventSource = (stream: string, fields: readonly string[]) => readonly (readonly Cell[])[];

/** What one query may cost. `steps` are those of SQLite's machine; `length` is in bytes, of one text or row that it puts aside. */
const [EVENTS, STEPS, LENGTH, ROWS, LETTERS, NAMES, SECONDS, HEAP] = [
  100_000,
  2_000_000,
  4_096,
  10_000,
  1 << 22,
  2_000,
  2,
  1 << 27,
];
const STRIDE = 100;
const [LONGEST_WORDS, OK, DENY] = [40, 0, 1];

/** A query that a class admits, what it touches, and how many columns its rows have. */
export interface AdmittedQuery {
  readonly query: SqlQuery;
  readonly touched: readonly string[];
  readonly columns: number;
}

/** The rows of a query; none, and why, where it failed: for the person's own log. */
export interface QueryOutcome {
  readonly rows: readonly (readonly Cell[])[];
  readonly failure: string | null;
}

class Stopped extends Error {}

/**
 * Where a recipe's query runs over a person's events: SQLite in memory, with nothing in it but what the query may read.
 * SQLite asks an authorizer for every field and function by name while it compiles; only fields that it has asked for are
 * put in. What a query touches is found on empty streams, so it cannot depend on events.
 */
export class QuerySandbox {
  constructor(
    private readonly sqlite: Sqlite3Static,
    private readonly streams: readonly StreamSchema[],
    private readonly found: QueryClass,
  ) {}

  /** What a query touches, found without any event; `Refused` where the class does not admit it. */
  admit(query: SqlQuery): AdmittedQuery {
    const reason = classRefusal(this.found, query);
    if (reason !== null) throw new Refused(reason);
    const authorizer = new Authorizer(this.sqlite, this.streams, this.found);
    const database = this.empty();
    let columns: number;
    try {
      columns = this.guarded(database, authorizer, () => this.fetched(database, query).columns);
    } catch (error) {
      const said = error instanceof Error ? error.message.slice(0, 200) : "it failed";
      throw new Refused(authorizer.refused ?? `this query cannot run, even without events: ${said}`);
    } finally {
      closed(database);
    }
    const touched = authorizer.touched;
    if (!touched.length) throw new Refused("this query reads no field of any stream");
    return { query, touched, columns };
  }

  /** The rows of a query that `admit` gave; no rows where anything goes wrong. Nothing that is raised comes out. */
  run({ query, touched }: AdmittedQuery, source: EventSource): QueryOutcome {
    try {
      const database = this.empty();
      try {
        for (const stream of this.streams) this.load(database, stream, touched, source);
        const authorizer = new Authorizer(this.sqlite, this.streams, this.found);
        return { rows: this.guarded(database, authorizer, () => this.fetched(database, query).rows), failure: null };
      } finally {
        closed(database);
      }
    } catch (error) {
      return { rows: [], failure: error instanceof Stopped ? error.message : "the query failed on these events" };
    }
  }

  /** SQLite in memory with a strict table for every stream, without a row. */
  private empty(): Database {
    const database = new this.sqlite.oo1.DB(":memory:");
    database.exec("PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF");
    for (const { name, fields } of this.streams) {
      database.exec(`CREATE TABLE ${name} (${fields.map((each) => `${each.name} ${each.type}`).join(", ")}) STRICT`);
    }
    return database;
  }

  /** Put the touched fields of a stream in; the others hold nothing. */
  private load(
    database: Database,
    { name, fields }: StreamSchema,
    touched: readonly string[],
    source: EventSource,
  ): void {
    const wanted = fields.filter((each) => touched.includes(`${name}.${each.name}`));
    if (!wanted.length) return;
    const events = source(
      name,
      wanted.map((each) => each.name),
    );
    if (events.length > EVENTS) throw new Stopped("there are too many events");
    database.exec("BEGIN");
    const insert = database.prepare(
      `INSERT INTO ${name} (${wanted.map((each) => each.name).join(", ")}) VALUES (${wanted.map(() => "?").join(", ")})`,
    );
    try {
      for (const event of events) {
        if (event.length !== wanted.length) throw new RangeError("an event has another number of fields");
        event.forEach((value, at) => {
          if (value !== null && typeOfValue(value) !== wanted[at]!.type)
            throw new RangeError("an event holds a value of another type");
          this.bind(insert, at + 1, value);
        });
        insert.stepReset();
      }
    } finally {
      insert.finalize();
    }
    database.exec("COMMIT");
  }

  /** As it is: 1.0 stays a real number. */
  private bind(statement: PreparedStatement, at: number, value: Cell): void {
    const { capi } = this.sqlite;
    if (typeof value === "bigint") capi.sqlite3_bind_int64(statement.pointer!, at, value);
    else if (typeof value === "number") capi.sqlite3_bind_double(statement.pointer!, at, value);
    else statement.bind(at, value);
  }

  /** All limits and the authorizer, for one query. */
  private guarded<T>(database: Database, authorizer: Authorizer, work: () => T): T {
    const { capi } = this.sqlite;
    database.exec(`PRAGMA query_only = ON; PRAGMA hard_heap_limit = ${HEAP}`);
    const limits: [number, number][] = [
      [capi.SQLITE_LIMIT_LENGTH, LENGTH],
      [capi.SQLITE_LIMIT_SQL_LENGTH, LONGEST_SQL],
      [capi.SQLITE_LIMIT_COLUMN, MOST_FIELDS],
      [capi.SQLITE_LIMIT_EXPR_DEPTH, 64],
      [capi.SQLITE_LIMIT_COMPOUND_SELECT, 16],
      [capi.SQLITE_LIMIT_VDBE_OP, 25_000],
      [capi.SQLITE_LIMIT_FUNCTION_ARG, 16],
      [capi.SQLITE_LIMIT_ATTACHED, 0],
      [capi.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64],
      [capi.SQLITE_LIMIT_VARIABLE_NUMBER, 64],
      [capi.SQLITE_LIMIT_TRIGGER_DEPTH, 1],
      [capi.SQLITE_LIMIT_WORKER_THREADS, 0],
    ];
    for (const [limit, most] of limits) capi.sqlite3_limit(database, limit as never, most);
    let [strides, spent] = [0, false];
    const begun = performance.now();
    const meter = (): number =>
      Number((spent = ++strides * STRIDE >= STEPS || performance.now() - begun > 1_000 * SECONDS));
    capi.sqlite3_progress_handler(database, STRIDE, meter, 0);
    capi.sqlite3_set_authorizer(database, (_, action, one, two) => authorizer.judged(action, text(one), text(two)), 0);
    try {
      return work();
    } catch (error) {
      throw spent ? new Stopped("the query took too many steps") : error;
    }
  }

  /** All rows, within the limits. */
  private fetched(database: Database, query: SqlQuery): { rows: Cell[][]; columns: number } {
    const { capi } = this.sqlite;
    const statement = database.prepare(query.text);
    try {
      const pointer = statement.pointer!;
      for (let at = 1; at <= statement.parameterCount; at++) {
        const value = query.parameters.get(capi.sqlite3_bind_parameter_name(pointer, at)?.slice(1) ?? "");
        if (value === undefined) throw new Error("it has a parameter that it is not handed");
        this.bind(statement, at, value);
      }
      const [rows, columns]: [Cell[][], number] = [[], statement.columnCount];
      let letters = 0;
      while (statement.step()) {
        const row = Array.from({ length: columns }, (_, at): Cell => {
          switch (capi.sqlite3_column_type(pointer, at)) {
            case capi.SQLITE_INTEGER:
              return BigInt(capi.sqlite3_column_int64(pointer, at));
            case capi.SQLITE_FLOAT:
              return capi.sqlite3_column_double(pointer, at);
            case capi.SQLITE_TEXT: {
              const value = capi.sqlite3_column_text(pointer, at) ?? "";
              letters += value.length;
              return value;
            }
            case capi.SQLITE_BLOB:
              letters += capi.sqlite3_column_bytes(pointer, at);
          }
          return null; // bytes fall into no bucket, as nothing does
        });
        rows.push(row);
        if (rows.length > ROWS || letters > LETTERS) throw new Stopped("the query has too many rows");
      }
      return { rows, columns };
    } finally {
      statement.finalize();
    }
  }
}

/** Whatever a query did to SQLite: what it says of that is no answer. */
function closed(database: Database): void {
  try {
    database.close();
  } catch {
    // it is in memory, and gone with the page
  }
}

const text = (operand: SqlValue | number): string => (typeof operand === "string" ? operand : "");

/** What SQLite asks while it compiles: yes to the class's fields and functions, and no to all else. */
class Authorizer {
  refused: string | null = null;
  private asked = 0;
  private readonly schemas: ReadonlyMap<string, ReadonlySet<string>>;
  private readonly read = new Set<string>();
  private readonly counted = new Set<string>();

  constructor(
    private readonly sqlite: Sqlite3Static,
    streams: readonly StreamSchema[],
    private readonly found: QueryClass,
  ) {
    this.schemas = new Map(streams.map(({ name, fields }) => [name, new Set(fields.map((each) => each.name))]));
  }

  /** What the query reads. One that only counts events touches every field of the stream that may be read. */
  get touched(): string[] {
    const streamOf = (field: string): string => field.slice(0, field.indexOf("."));
    const named = new Set([...this.read].map(streamOf));
    const counted = this.found.fields.filter(
      (field) => this.counted.has(streamOf(field)) && !named.has(streamOf(field)),
    );
    return [...new Set([...this.read, ...counted])].sort(byName);
  }

  judged(action: number, one: string, two: string): number {
    this.asked++;
    let reason = this.judge(action, one, two);
    if (this.asked > NAMES) reason = `this query names more than ${NAMES} things when its parts are put in`;
    if (reason === null) return OK;
    this.refused ??= reason;
    return DENY;
  }

  private judge(action: number, one: string, two: string): string | null {
    const { capi } = this.sqlite;
    switch (action) {
      case capi.SQLITE_SELECT:
        return null;
      case capi.SQLITE_FUNCTION:
        return this.found.functions.includes(two.toLowerCase())
          ? null
          : `queries here do not use the function ${two.slice(0, LONGEST_WORDS)}`;
      case capi.SQLITE_READ:
        return this.reading(one.toLowerCase(), two);
      case capi.SQLITE_RECURSIVE:
        return "queries here do not repeat themselves (WITH RECURSIVE)";
    }
    return "queries here only read events";
  }

  private reading(table: string, column: string): string | null {
    const fields = this.schemas.get(table);
    if (!fields)
      return column || this.builtIn(table) ? `this device has no stream ${table.slice(0, LONGEST_WORDS)}` : null;
    if (!column) {
      this.counted.add(table);
      return this.found.fields.some((field) => field.startsWith(`${table}.`))
        ? null
        : `this device does not let queries count ${table}`;
    }
    const name = `${table}.${column}`;
    if (!fields.has(column) || !this.found.fields.includes(name))
      return `this device does not let queries read ${table}.${column.slice(0, 63)}`;
    this.read.add(name);
    return null;
  }

  /** Whether SQLite itself has a table of this name (its schema, pragmas, functions that give rows). */
  private builtIn(table: string): boolean {
    const database = new this.sqlite.oo1.DB(":memory:");
    try {
      database.prepare(`SELECT 1 FROM "${table.replaceAll('"', '""')}"`).finalize();
      return true;
    } catch (error) {
      return !(error instanceof Error && error.message.includes("no such table"));
    } finally {
      closed(database);
    }
  }
}
