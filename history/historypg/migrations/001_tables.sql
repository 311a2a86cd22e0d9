-- A name after @ stands in the schema of the store. FORMAT.md describes the tables.

CREATE TABLE @meta (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL,
    min_reader integer NOT NULL,
    min_writer integer NOT NULL,
    id text NOT NULL,
    seen bigint NOT NULL DEFAULT 0,
    ahead bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE @runs (
    run bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    execution_id text COLLATE "C" NOT NULL UNIQUE,
    seq bigint NOT NULL,
    phase text COLLATE "C" NOT NULL,
    definition_name text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    listed_at bigint NOT NULL,
    driven smallint NOT NULL,
    bytes bigint NOT NULL,
    owner text COLLATE "C",
    disowned bigint,
    position_seq bigint NOT NULL DEFAULT 0,
    position bytea,
    projection text NOT NULL
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE @runs ALTER position SET STORAGE EXTERNAL;
CREATE INDEX runs_by_phase ON @runs (phase, listed_at);
CREATE INDEX runs_by_definition ON @runs (definition_name, phase, listed_at);
CREATE INDEX runs_by_owner ON @runs (owner, execution_id) WHERE owner IS NOT NULL;
CREATE INDEX runs_unowned ON @runs (execution_id) WHERE driven = 1 AND owner IS NULL;

CREATE TABLE @records (
    run bigint NOT NULL,
    seq bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    form smallint NOT NULL,
    payload text NOT NULL,
    PRIMARY KEY (run, seq)
);

CREATE TABLE @blobs (
    run bigint NOT NULL,
    hash text COLLATE "C" NOT NULL,
    content text NOT NULL,
    PRIMARY KEY (run, hash)
);

CREATE TABLE @run_labels (
    run bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    PRIMARY KEY (run, name)
);
CREATE INDEX run_labels_by_value ON @run_labels (name, value, run);

CREATE TABLE @timers (
    run bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    due bigint NOT NULL,
    PRIMARY KEY (run, key)
);
CREATE INDEX timers_by_due ON @timers (due);

CREATE TABLE @definitions (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash text COLLATE "C" NOT NULL UNIQUE,
    name text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    text text NOT NULL,
    signatures text NOT NULL,
    stored_at bigint NOT NULL
);
CREATE INDEX definitions_by_name ON @definitions (name, number);

CREATE TABLE @processes (
    process text COLLATE "C" PRIMARY KEY,
    expires bigint NOT NULL,
    about text
) WITH (fillfactor = 50);

CREATE TABLE @ready (
    run bigint PRIMARY KEY,
    lane text COLLATE "C" NOT NULL,
    priority bigint NOT NULL,
    turn bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    since bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500);
CREATE INDEX ready_by_turn ON @ready (lane, priority DESC, turn, run);
CREATE INDEX ready_by_age ON @ready (lane, since, run);
CREATE INDEX ready_by_tenant ON @ready (tenant, turn);

CREATE TABLE @limits (
    class text COLLATE "C" PRIMARY KEY,
    concurrent bigint NOT NULL,
    per_second double precision NOT NULL,
    next bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE @shares (
    class text COLLATE "C" NOT NULL,
    process text COLLATE "C" NOT NULL,
    slots bigint NOT NULL,
    wanted bigint NOT NULL,
    starts bigint NOT NULL,
    since bigint NOT NULL,
    PRIMARY KEY (class, process)
) WITH (fillfactor = 50);

CREATE TABLE @delivery_events (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id text COLLATE "C" NOT NULL UNIQUE,
    run bigint NOT NULL,
    seq bigint NOT NULL,
    event text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    body text NOT NULL
);
CREATE INDEX delivery_events_by_run ON @delivery_events (run);

CREATE TABLE @deliveries (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    delivery_id text COLLATE "C" NOT NULL UNIQUE,
    event_id text COLLATE "C" NOT NULL,
    run bigint NOT NULL,
    target text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    due bigint NOT NULL,
    step integer NOT NULL DEFAULT 0,
    attempts integer NOT NULL DEFAULT 0,
    leased bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 80);
CREATE INDEX deliveries_due ON @deliveries (target, due, number) WHERE state = 'pending';
CREATE INDEX deliveries_by_run ON @deliveries (run, state);
CREATE INDEX deliveries_by_state ON @deliveries (state, number);

CREATE TABLE @delivery_attempts (
    delivery bigint NOT NULL,
    attempt integer NOT NULL,
    process text COLLATE "C" NOT NULL,
    began_at bigint NOT NULL,
    ended_at bigint NOT NULL DEFAULT 0,
    outcome text NOT NULL DEFAULT '',
    status integer NOT NULL DEFAULT 0,
    error text NOT NULL DEFAULT '',
    PRIMARY KEY (delivery, attempt)
);

CREATE TABLE @run_links (
    to_id text COLLATE "C" PRIMARY KEY,
    from_id text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    seq bigint NOT NULL,
    actor text NOT NULL,
    at bigint NOT NULL
);
CREATE INDEX run_links_by_origin ON @run_links (from_id);

CREATE TABLE @handled (
    execution_id text COLLATE "C" PRIMARY KEY,
    note text NOT NULL,
    retry_id text COLLATE "C" NOT NULL,
    actor text NOT NULL,
    at bigint NOT NULL
);

CREATE TABLE @keys (
    name text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);

INSERT INTO @meta (version, min_reader, min_writer, id) VALUES (1, 1, 1, gen_random_uuid()::text);
