-- The tables of a ledger of many stewards in PostgreSQL 14 or newer, and the only ways to write to them.
--
-- Nobody has rights to insert, update or delete. Three groups may read, and call functions that run with the rights of
-- {tables}, as whom nobody can log in:
--   {steward}  charges, and notes what its own charges were spent on
--   {owner}    opens data sets, sets caps, says whom data sets protect, forgets payloads
--   {auditor}  reads
-- The functions check again what hazemap has checked, because whoever may call them may do so by hand.
-- This file may be run again: it changes nothing that is there, and brings functions and rights up to date.

CREATE TABLE IF NOT EXISTS ledger (
    one BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one),
    version INTEGER NOT NULL,
    identity TEXT NOT NULL,
    created TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS datasets (
    name TEXT COLLATE "C" PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 200 AND name !~ '[[:cntrl:]]'),
    protects TEXT,
    earlier TEXT CHECK (earlier IS NULL),
    created TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS pages (
    dataset TEXT COLLATE "C" NOT NULL REFERENCES datasets (name),
    model TEXT COLLATE "C" NOT NULL CHECK (model IN ('full', 'values-only')),
    cap TEXT,
    cap_rho TEXT,
    created TEXT NOT NULL,
    PRIMARY KEY (dataset, model)
);

CREATE TABLE IF NOT EXISTS charges (
    id BIGINT PRIMARY KEY CHECK (id > 0),
    dataset TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    unit TEXT NOT NULL,
    price TEXT NOT NULL,
    rho TEXT NOT NULL,
    time TEXT COLLATE "C" NOT NULL,
    who TEXT NOT NULL,
    what TEXT NOT NULL CHECK (length(what) <= 10000 AND what !~ '[[:cntrl:]]'),
    state TEXT NOT NULL DEFAULT 'charged' CHECK (state IN ('charged', 'released')),
    file TEXT CHECK (length(file) <= 10000),
    statement TEXT,
    run TEXT UNIQUE CHECK (length(run) <= 200 AND run !~ '[[:cntrl:]]'),
    schedule TEXT CHECK (length(schedule) <= 200 AND schedule !~ '[[:cntrl:]]'),
    period TEXT CHECK (length(period) <= 200 AND period !~ '[[:cntrl:]]'),
    allowance TEXT,
    CHECK (num_nulls(schedule, period, allowance) IN (0, 3)),
    FOREIGN KEY (dataset, model) REFERENCES pages (dataset, model)
);
CREATE INDEX IF NOT EXISTS charges_of_page ON charges (dataset, model);
-- A period of a schedule is paid for once; a question asked once more after a crash (run:1, run:2 …) belongs to it.
CREATE UNIQUE INDEX IF NOT EXISTS charge_of_period ON charges (schedule, period)
    WHERE schedule IS NOT NULL AND (run IS NULL OR run NOT LIKE '%:%');

CREATE TABLE IF NOT EXISTS changes (
    id BIGINT PRIMARY KEY CHECK (id > 0),
    dataset TEXT COLLATE "C" NOT NULL REFERENCES datasets (name),
    model TEXT,
    old TEXT,
    new TEXT NOT NULL,
    time TEXT NOT NULL,
    who TEXT NOT NULL,
    why TEXT CHECK (length(why) <= 10000 AND why !~ '[[:cntrl:]]')
);

CREATE TABLE IF NOT EXISTS fingerprints (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dataset TEXT COLLATE "C" NOT NULL REFERENCES datasets (name),
    fingerprint BYTEA NOT NULL CHECK (length(fingerprint) <= 100000)
);

-- What was forgotten, when and by whom.
CREATE TABLE IF NOT EXISTS forgotten (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    before TEXT NOT NULL,
    dataset TEXT,
    statements BIGINT NOT NULL,
    fingerprints BIGINT NOT NULL,
    time TEXT NOT NULL,
    who TEXT NOT NULL
);

-- A transaction that writes leaves its token here: who lost the connection while it was ending looks whether it counted.
CREATE TABLE IF NOT EXISTS writes (
    token TEXT PRIMARY KEY CHECK (length(token) = 32),
    time TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);

-- Rationals: two numbers {numerator, denominator}, exact.

CREATE OR REPLACE FUNCTION rational(given TEXT) RETURNS NUMERIC[]
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, hazemap_ledger, pg_temp AS $$
DECLARE found TEXT[] := regexp_match(given, '^([0-9]+)(?:/([0-9]+))?$');
BEGIN
    IF length(given) > 4000 OR found IS NULL OR found[1]::NUMERIC = 0 OR coalesce(found[2], '1')::NUMERIC = 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'HZ002', MESSAGE = 'an amount of privacy is a rational above 0, such as 1/7';
    END IF;
    RETURN ARRAY[found[1]::NUMERIC, coalesce(found[2], '1')::NUMERIC];
END $$;

CREATE OR REPLACE FUNCTION added(a NUMERIC[], b NUMERIC[]) RETURNS NUMERIC[]
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    n NUMERIC := a[1] * b[2] + b[1] * a[2];
    d NUMERIC := a[2] * b[2];
    g NUMERIC := gcd(a[1] * b[2] + b[1] * a[2], a[2] * b[2]);
BEGIN
    RETURN ARRAY[div(n, g), div(d, g)];
END $$;

CREATE OR REPLACE FUNCTION at_most(a NUMERIC[], b NUMERIC[]) RETURNS BOOLEAN
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$ SELECT a[1] * b[2] <= b[1] * a[2] $$;

-- A budget as hazemap writes it: JSON of its kind and its rationals, and nothing else.
CREATE OR REPLACE FUNCTION budget(given TEXT) RETURNS JSONB
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, hazemap_ledger, pg_temp AS $$
DECLARE
    found JSONB := given::JSONB;
    plain JSONB;
BEGIN
    found := CASE jsonb_typeof(found) WHEN 'object' THEN found ELSE '{}' END;
    plain := CASE found ->> 'kind'
        WHEN 'PureDP' THEN jsonb_build_object('kind', 'PureDP', 'epsilon', found ->> 'epsilon')
        WHEN 'ZCDP' THEN jsonb_build_object('kind', 'ZCDP', 'rho', found ->> 'rho')
        WHEN 'ApproxDP' THEN jsonb_build_object('kind', 'ApproxDP', 'epsilon', found ->> 'epsilon', 'delta', found ->> 'delta')
        END;
    IF found = plain AND (SELECT bool_and(key = 'kind' OR value ~ '^[0-9]{1,150}(/[0-9]{1,150})?$') FROM jsonb_each_text(found))
    THEN
        -- rational refuses zeros; δ is below 1
        PERFORM rational(value) FROM jsonb_each_text(found) WHERE key <> 'kind';
        IF found ->> 'kind' <> 'ApproxDP' OR NOT at_most(ARRAY[1, 1], rational(found ->> 'delta')) THEN
            RETURN found;
        END IF;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'HZ002', MESSAGE = 'this is no budget of hazemap''s';
END $$;

-- A price or a cap, if it is booked with the ρ that it costs; the rest of a pure ε, after a look, costs more than ε²/2.
CREATE OR REPLACE FUNCTION checked_budget(given TEXT, booked_with TEXT) RETURNS TEXT
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, hazemap_ledger, pg_temp AS $$
DECLARE
    found JSONB := budget(given);
    booked NUMERIC[] := rational(coalesce(booked_with, ''));
    e NUMERIC[] := rational(coalesce(found ->> 'epsilon', found ->> 'rho'));
    d NUMERIC[] := rational(found ->> 'delta');
    l FLOAT8;
    x FLOAT8;
    fits BOOLEAN;
BEGIN
    IF found ->> 'kind' = 'PureDP' THEN
        fits := booked[1] * 2 * e[2] * e[2] >= booked[2] * e[1] * e[1];
    ELSIF found ->> 'kind' = 'ZCDP' THEN
        fits := booked[1] * e[2] = booked[2] * e[1];
    ELSE
        -- Bun and Steinke 2016, proposition 1.3: ρ = (√(ε + ln 1/δ) − √ln 1/δ)² stays within (ε, δ). What hazemap books
        -- is the largest ρ that does by a sharper conversion, rounded down to 40 bits: never less.
        l := ln(d[2]) - ln(d[1]) + 1e-8;
        x := e[1] / e[2];
        fits := booked[1] / booked[2] >= 0.999 * power(x / (sqrt(x + l) + sqrt(l)), 2) - 1e-11;
    END IF;
    IF NOT fits THEN
        RAISE EXCEPTION USING ERRCODE = 'HZ002', MESSAGE = 'a budget is booked with the ρ that it costs';
    END IF;
    RETURN found::TEXT;
END $$;

-- What has been paid on a page, in ε or in ρ; NULL in ε where something was not paid in pure ε.
-- A charge of the full model counts on the values-only page as well, at 2 ε or 4 ρ (privacy/ledger_balance.py).
CREATE OR REPLACE FUNCTION spent(of_dataset TEXT, of_model TEXT, measure TEXT) RETURNS NUMERIC[]
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, hazemap_ledger, pg_temp AS $$
DECLARE
    total NUMERIC[] := ARRAY[0, 1];
    each RECORD;
    one NUMERIC[];
    times INTEGER;
BEGIN
    FOR each IN
        SELECT c.model, c.price, c.rho, count(*) AS charges FROM charges AS c
        WHERE c.dataset = of_dataset AND (c.model = of_model OR of_model = 'values-only')
        GROUP BY c.model, c.price, c.rho
    LOOP
        times := 1;
        IF measure = 'ε' THEN
            IF each.price::JSONB ->> 'kind' <> 'PureDP' THEN
                RETURN NULL;
            END IF;
            one := rational(each.price::JSONB ->> 'epsilon');
            IF each.model <> of_model THEN times := 2; END IF;
        ELSE
            one := rational(each.rho);
            IF each.model <> of_model THEN times := 4; END IF;
        END IF;
        total := added(total, ARRAY[one[1] * times * each.charges, one[2]]);
    END LOOP;
    RETURN total;
END $$;

CREATE OR REPLACE FUNCTION utc() RETURNS TEXT
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
$$;

-- Sums are of the whole ledger at one instant: in a weaker isolation two could both spend the last of a cap.
CREATE OR REPLACE FUNCTION need_serialisable() RETURNS VOID
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'serializable' THEN
        RAISE EXCEPTION USING ERRCODE = 'HZ002', MESSAGE = 'the ledger is written in serialisable transactions only';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION begin_write(of_token TEXT) RETURNS VOID
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, hazemap_ledger, pg_temp AS $$
BEGIN
    PERFORM need_serialisable();
    INSERT INTO writes (token) VALUES (of_token);
END $$;

CREATE OR REPLACE FUNCTION was_written(of_token TEXT) RETURNS BOOLEAN
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, hazemap_ledger, pg_temp AS $$
    SELECT EXISTS (SELECT FROM writes WHERE token = of_token)
$$;

CREATE OR REPLACE FUNCTION write_charge(
    of_dataset TEXT, of_model TEXT, of_unit TEXT, of_price TEXT, of_rho TEXT, of_what TEXT, of_run TEXT,
    of_schedule TEXT, of_period TEXT, of_allowance TEXT, OUT number BIGINT, OUT paid TEXT
)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, hazemap_ledger, pg_temp AS $$
DECLARE
    price TEXT := checked_budget(of_price, of_rho);
    whose JSONB := of_unit::JSONB;
    whom JSONB;
    known JSONB;
    page RECORD;
    cost NUMERIC[];
BEGIN
    PERFORM need_serialisable();
    whom := CASE jsonb_typeof(whose) WHEN 'object' THEN whose - 'model' - 'guessed' END;
    IF whose ->> 'model' IS DISTINCT FROM of_model OR NOT coalesce(CASE whose ->> 'kind'
        WHEN 'person' THEN
            whose = jsonb_build_object('kind', 'person', 'model', of_model, 'id_column', whose ->> 'id_column',
                                       'read_as', whose ->> 'read_as', 'guessed', (whose ->> 'guessed')::BOOLEAN)
            AND length(whose ->> 'id_column') BETWEEN 1 AND 300 AND length(whose ->> 'read_as') BETWEEN 1 AND 300
        WHEN 'row' THEN whose = '{"kind": "row", "model": "full"}'
        WHEN 'device' THEN whose = '{"kind": "device", "model": "full"}'
        END, FALSE)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'HZ002', MESSAGE = 'this is no unit of privacy of hazemap''s';
    END IF;
    SELECT protects::JSONB INTO known FROM datasets WHERE name = of_dataset;
    IF known ->> 'kind' <> whom ->> 'kind' THEN
        RAISE EXCEPTION USING ERRCODE = 'HZ002', MESSAGE = 'the data set protects others than this charge is about';
    END IF;
    PERFORM FROM pages WHERE dataset = of_dataset AND model = of_model AND cap IS NOT NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'HZ001', MESSAGE = 'nothing is charged to a page without a cap: its owner sets one';
    END IF;
    FOR page IN
        SELECT model, cap::JSONB AS cap, cap_rho FROM pages
        WHERE dataset = of_dataset AND (model = of_model OR model = 'values-only') AND cap IS NOT NULL
    LOOP
        IF page.cap ->> 'kind' = 'PureDP' THEN
            IF price::JSONB ->> 'kind' <> 'PureDP' THEN
                RAISE EXCEPTION USING ERRCODE = 'HZ001', MESSAGE = 'under a cap in pure ε nothing but pure ε is charged';
            END IF;
            cost := rational(price::JSONB ->> 'epsilon');
            IF page.model <> of_model THEN cost[1] := 2 * cost[1]; END IF;
            -- NULL, which is refused, where something was paid in ρ
            IF at_most(added(spent(of_dataset, page.model, 'ε'), cost), rational(page.cap ->> 'epsilon')) THEN
                CONTINUE;
            END IF;
        ELSE
            cost := rational(of_rho);
            IF page.model <> of_model THEN cost[1] := 4 * cost[1]; END IF;
            IF at_most(added(spent(of_dataset, page.model, 'ρ'), cost), rational(page.cap_rho)) THEN
                CONTINUE;
            END IF;
        END IF;
        RAISE EXCEPTION USING ERRCODE = 'HZ001', MESSAGE = 'the cap of the data set leaves no room for this charge';
    END LOOP;
    IF of_allowance IS NOT NULL THEN PERFORM budget(of_allowance); END IF;
    IF EXISTS (SELECT FROM charges WHERE run = of_run) THEN
        RAISE EXCEPTION USING ERRCODE = 'HZ002', MESSAGE = 'this run has paid already';
    END IF;
    SELECT coalesce(max(id), 0) + 1 INTO number FROM charges;  -- without a gap: one that is missing was removed
    paid := utc();
    IF known IS NULL OR (known ->> 'kind' = 'person' AND known ->> 'read_as' IS NULL) THEN
        UPDATE datasets SET protects = whom::TEXT WHERE name = of_dataset;
    END IF;
    INSERT INTO charges (id, dataset, model, unit, price, rho, time, who, what, run, schedule, period, allowance)
    VALUES (number, of_dataset, of_model, whose::TEXT, price, of_rho, paid, session_user, of_what, of_run, of_schedule,
            of_period, of_allowance);
END $$;

-- Whether a charge, with the rest of its run if that was paid apart, is exactly what a statement says.
CREATE OR REPLACE FUNCTION paid_for(of_run TEXT, of_price TEXT, of_rho TEXT, of_budget JSONB) RETURNS BOOLEAN
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, hazemap_ledger, pg_temp AS $$
DECLARE
    rest RECORD;
    total NUMERIC[];
BEGIN
    SELECT price, rho INTO rest FROM charges WHERE run = of_run || ':rest';
    IF NOT FOUND THEN
        RETURN of_budget = of_price::JSONB;
    END IF;
    IF of_budget ->> 'kind' = 'PureDP' THEN
        IF of_price::JSONB ->> 'kind' <> 'PureDP' OR rest.price::JSONB ->> 'kind' <> 'PureDP' THEN
            RETURN FALSE;
        END IF;
        total := added(rational(of_price::JSONB ->> 'epsilon'), rational(rest.price::JSONB ->> 'epsilon'));
        RETURN at_most(total, rational(of_budget ->> 'epsilon')) AND at_most(rational(of_budget ->> 'epsilon'), total);
    END IF;
    total := added(rational(of_rho), rational(rest.rho));
    PERFORM checked_budget(of_budget::TEXT, total[1]::TEXT || '/' || total[2]::TEXT);
    RETURN TRUE;
END $$;

-- Whoever paid says what for, once.
CREATE OR REPLACE FUNCTION note_release(of_charge BIGINT, of_statement TEXT, of_file TEXT) RETURNS VOID
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, hazemap_ledger, pg_temp AS $$
BEGIN
    PERFORM need_serialisable();
    UPDATE charges SET state = 'released', statement = of_statement, file = of_file
    WHERE id = of_charge AND state = 'charged' AND who = session_user AND length(of_statement) <= 1000000
        AND paid_for(run, price, rho, of_statement::JSONB -> 'budget');
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'HZ002',
            MESSAGE = 'what a charge was spent on is noted once, by who paid it, with the statement of the release';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION note_release_again(of_charge BIGINT, of_dataset TEXT, of_file TEXT) RETURNS VOID
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, hazemap_ledger, pg_temp AS $$
BEGIN
    PERFORM need_serialisable();
    UPDATE charges SET state = 'released', file = of_file
    WHERE id = of_charge AND dataset = of_dataset AND state = 'charged' AND who = session_user AND run LIKE '%:%';
END $$;

CREATE OR REPLACE FUNCTION remember(of_dataset TEXT, of_fingerprint BYTEA, most INTEGER) RETURNS VOID
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, hazemap_ledger, pg_temp AS $$
BEGIN
    PERFORM need_serialisable();
    IF NOT EXISTS (SELECT FROM datasets WHERE name = of_dataset) THEN RETURN; END IF;
    DELETE FROM fingerprints WHERE dataset = of_dataset AND fingerprint = of_fingerprint;
    INSERT INTO fingerprints (dataset, fingerprint) VALUES (of_dataset, of_fingerprint);
    DELETE FROM fingerprints WHERE dataset = of_dataset AND id NOT IN
        (SELECT id FROM fingerprints WHERE dataset = of_dataset ORDER BY id DESC LIMIT least(greatest(most, 1), 100));
END $$;

CREATE OR REPLACE FUNCTION open_page(of_dataset TEXT, of_model TEXT) RETURNS VOID
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, hazemap_ledger, pg_temp AS $$
BEGIN
    PERFORM need_serialisable();
    INSERT INTO datasets (name, created) VALUES (of_dataset, utc()) ON CONFLICT DO NOTHING;
    IF of_model IS NOT NULL THEN
        INSERT INTO pages (dataset, model, created) VALUES (of_dataset, of_model, utc()) ON CONFLICT DO NOTHING;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION note_change(of_dataset TEXT, of_model TEXT, before TEXT, after TEXT, of_why TEXT) RETURNS VOID
LANGUAGE sql VOLATILE SET search_path = pg_catalog, hazemap_ledger, pg_temp AS $$
    INSERT INTO changes (id, dataset, model, old, new, time, who, why)
    SELECT coalesce(max(id), 0) + 1, of_dataset, of_model, before, after, utc(), session_user, of_why FROM changes
$$;

CREATE OR REPLACE FUNCTION set_cap(of_dataset TEXT, of_model TEXT, of_cap TEXT, of_rho TEXT, of_why TEXT) RETURNS VOID
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, hazemap_ledger, pg_temp AS $$
DECLARE
    checked TEXT := checked_budget(of_cap, of_rho);
    before TEXT;
BEGIN
    PERFORM need_serialisable();
    IF checked::JSONB ->> 'kind' = 'PureDP' AND spent(of_dataset, of_model, 'ε') IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'HZ002', MESSAGE = 'after charges in ρ no cap in pure ε can hold';
    END IF;
    SELECT cap INTO before FROM pages WHERE dataset = of_dataset AND model = of_model;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'HZ002', MESSAGE = 'there is no such page: open it first';
    END IF;
    UPDATE pages SET cap = checked, cap_rho = of_rho WHERE dataset = of_dataset AND model = of_model;
    PERFORM note_change(of_dataset, of_model, before, checked, of_why);
END $$;

CREATE OR REPLACE FUNCTION set_protects(of_dataset TEXT, of_whom TEXT, of_why TEXT) RETURNS VOID
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, hazemap_ledger, pg_temp AS $$
DECLARE
    whom JSONB := of_whom::JSONB;
    before TEXT;
BEGIN
    PERFORM need_serialisable();
    SELECT protects INTO before FROM datasets WHERE name = of_dataset;
    IF NOT FOUND OR EXISTS (SELECT FROM charges WHERE dataset = of_dataset) THEN
        RAISE EXCEPTION USING ERRCODE = 'HZ002', MESSAGE = 'whom a data set protects is said before its first charge';
    END IF;
    IF NOT coalesce(CASE whom ->> 'kind'
        WHEN 'person' THEN
            jsonb_typeof(whom -> 'id_column') = 'string' AND length(whom ->> 'id_column') BETWEEN 1 AND 300
            AND whom - 'kind' - 'id_column' IN ('{}', jsonb_build_object('read_as', whom ->> 'read_as'))
        WHEN 'row' THEN whom = '{"kind": "row"}'
        WHEN 'device' THEN whom = '{"kind": "device"}'
        END, FALSE)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'HZ002', MESSAGE = 'this does not say whom a data set protects';
    END IF;
    UPDATE datasets SET protects = whom::TEXT WHERE name = of_dataset;
    PERFORM note_change(of_dataset, NULL, before, whom::TEXT, of_why);
END $$;

CREATE OR REPLACE FUNCTION forget(of_before TEXT, of_dataset TEXT, OUT said BIGINT, OUT prints BIGINT)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, hazemap_ledger, pg_temp AS $$
BEGIN
    PERFORM need_serialisable();
    IF of_before !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$' OR of_before > utc() THEN
        RAISE EXCEPTION USING ERRCODE = 'HZ002', MESSAGE = 'what is forgotten was paid before a time that is over';
    END IF;
    UPDATE charges SET statement = NULL
    WHERE state = 'released' AND statement IS NOT NULL AND time < of_before AND coalesce(dataset = of_dataset, TRUE);
    GET DIAGNOSTICS said = ROW_COUNT;
    DELETE FROM fingerprints AS f WHERE coalesce(f.dataset = of_dataset, TRUE)
        AND NOT EXISTS (SELECT FROM charges AS c WHERE c.dataset = f.dataset AND c.time >= of_before);
    GET DIAGNOSTICS prints = ROW_COUNT;
    DELETE FROM writes WHERE time < clock_timestamp() - INTERVAL '7 days';
    INSERT INTO forgotten (before, dataset, statements, fingerprints, time, who)
    VALUES (of_before, of_dataset, said, prints, utc(), session_user);
END $$;

-- A charge and a change stay as they are, whoever asks: not even who administers the database removes one by mistake.
CREATE OR REPLACE FUNCTION refuse() RETURNS TRIGGER
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'HZ002', MESSAGE = 'the ledger is append-only: ' || TG_TABLE_NAME || ' stay as they are';
END $$;

CREATE OR REPLACE TRIGGER stays BEFORE DELETE OR TRUNCATE ON charges FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE OR REPLACE TRIGGER stays BEFORE UPDATE OR DELETE OR TRUNCATE ON changes FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE OR REPLACE TRIGGER stays BEFORE DELETE OR TRUNCATE ON pages FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE OR REPLACE TRIGGER stays BEFORE DELETE OR TRUNCATE ON datasets FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE OR REPLACE TRIGGER price_stays BEFORE UPDATE ON charges FOR EACH ROW
    WHEN ((OLD.id, OLD.dataset, OLD.model, OLD.unit, OLD.price, OLD.rho, OLD.time, OLD.who, OLD.what, OLD.run, OLD.schedule,
           OLD.period, OLD.allowance) IS DISTINCT FROM
          (NEW.id, NEW.dataset, NEW.model, NEW.unit, NEW.price, NEW.rho, NEW.time, NEW.who, NEW.what, NEW.run, NEW.schedule,
           NEW.period, NEW.allowance) OR (OLD.state = 'released' AND NEW.state <> 'released'))
    EXECUTE FUNCTION refuse();

REVOKE ALL ON SCHEMA hazemap_ledger FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA hazemap_ledger FROM PUBLIC, {steward}, {owner}, {auditor};
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA hazemap_ledger FROM PUBLIC, {steward}, {owner}, {auditor};
GRANT USAGE ON SCHEMA hazemap_ledger TO {steward}, {owner}, {auditor};
GRANT SELECT ON ledger, datasets, pages, charges, changes, forgotten TO {steward}, {owner}, {auditor};
GRANT SELECT ON fingerprints TO {steward};
GRANT EXECUTE ON FUNCTION begin_write, was_written TO {steward}, {owner};
GRANT EXECUTE ON FUNCTION write_charge, note_release, note_release_again, remember TO {steward};
GRANT EXECUTE ON FUNCTION open_page, set_cap, set_protects, forget TO {owner};
