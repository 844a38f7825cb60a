S, D = "src/hazemap/codec/serialize.py", "src/hazemap/codec/deserialize.py"
EDITS = [
    (S, "from hazemap.codec.allowed_types import RENAMED\n", "from hazemap.codec.allowed_types import RENAMED, written_name\n"),
    (S, "written = {type(thing).__name__: fields}", "written = {written_name(type(thing)): fields}"),
    (D, "import CLOSED_LIST, RENAMED, UNIONS", "import CLOSED_LIST, RENAMED, UNIONS, written_name"),
    (D, "self.names = {each.__name__: each for each", "self.names = {written_name(each): each for each"),
    (D, "        name = class_.__name__\n", "        name = written_name(class_)\n"),
    ("tests/test_architecture.py", '"atomic_write | field_types | jit_cache"', '"arrays | atomic_write | field_types | jit_cache"'),
    ("src/hazemap/encoders/public_location_values.py", "hazemap.tables.person_cell_values.SelectedPersonCellValues", "tables.person_cell_values"),
]
EDITS += [
    ("src/hazemap/encoders/array_quantile_scores.py", "    >>> ArrayQuantiles(Quantizer(0, 65), some, BestFit(4), (Fraction(1, 10), Fraction(9, 10))).sensitivity(Fraction(1, 10))\n",
     "    >>> ranks = Fraction(1, 10), Fraction(9, 10)\n    >>> ArrayQuantiles(Quantizer(0, 65), some, BestFit(4), ranks).sensitivity(Fraction(1, 10))\n"),
    ("src/hazemap/encoders/public_location_values.py", "    >>> asked = PublicLocationValues(tree, OwnMeans(2, scale=KnownCountEncoding(value_encoding).l1), people, weight, most=2, squares=2)\n",
     "    >>> rule = OwnMeans(2, scale=KnownCountEncoding(value_encoding).l1)\n    >>> asked = PublicLocationValues(tree, rule, people, weight, most=2, squares=2)\n"),
    ("src/hazemap/estimate/known_count_estimates.py", "    >>> asked = PublicLocationValues(one, OwnMeans(1, scale=1 << 20), np.array([120]), np.array([100]), most=1, squares=1)\n",
     "    >>> rule, people = OwnMeans(1, scale=1 << 20), np.array([120])\n    >>> asked = PublicLocationValues(one, rule, people, np.array([100]), most=1, squares=1)\n"),
    ("src/hazemap/spatial/binary_partition.py", "    >>> tree = BinaryPartition.uncut(Quadtree.world(depth=10)).cut(np.array([1], dtype=np.uint64), np.array([0]), np.array([300]))\n",
     "    >>> tree = BinaryPartition.uncut(Quadtree.world(depth=10))\n    >>> tree = tree.cut(np.array([1], dtype=np.uint64), np.array([0]), np.array([300]))\n"),
    ("src/hazemap/tables/summed_area_table.py", "    >>> SummedAreaTable(np.array([[0, 0, 0], [0, 1, 3], [0, 4, 10]])).inside(Rectangles(*np.array([[1], [0], [2], [2]])))\n",
     "    >>> table = SummedAreaTable(np.array([[0, 0, 0], [0, 1, 3], [0, 4, 10]]))\n    >>> table.inside(Rectangles(*np.array([[1], [0], [2], [2]])))\n"),
    ("src/hazemap/device/encrypted_store.py", "    >>> with tempfile.TemporaryDirectory() as folder, EncryptedStore.opened(Path(folder) / \"d.sqlite\", create=True) as store:\n    ...     store",
     "    >>> with tempfile.TemporaryDirectory() as folder:\n    ...     path = Path(folder) / \"d.sqlite\"\n    ...     with EncryptedStore.opened(path, create=True) as store:\n    ...         store"),
    ("src/hazemap/values/known_count_encoding.py", "    >>> KnownCountEncoding(ValueEncoding(0, 65)).l1 == KnownCountEncoding(ValueEncoding(0, 65, 2)).l1 == 1 << 20, KnownCountEncoding(ValueEncoding(0, 65, 2, 16)).l1 == 3 << 20\n    (True, True)\n",
     "    >>> encodings = ValueEncoding(0, 65), ValueEncoding(0, 65, 2), ValueEncoding(0, 65, 2, 16)\n    >>> [KnownCountEncoding(each).l1 >> 20 for each in encodings]\n    [1, 1, 3]\n"),
    ("src/hazemap/protocols/secure_aggregation/in_memory_round.py", "    >>> terms = SessionParameters(Mode.MALICIOUS, bytes(32), bytes(32), clients=6, degree=5, threshold=4, survivors=5, size=3,\n    ...               bits=16, noise",
     "    >>> terms = SessionParameters(Mode.MALICIOUS, bytes(32), bytes(32), clients=6, degree=5, threshold=4, survivors=5,\n    ...               size=3, bits=16, noise"),
    ("src/hazemap/protocols/secure_aggregation/session_parameters.py", "50, 40, 30, 45, 16, 20, DistributedNoise(Fraction(10), 40),\n    ...               roster", "50, 40, 30, 45, 16, 20,\n    ...               DistributedNoise(Fraction(10), 40), roster"),
    ("src/hazemap/protocols/secure_aggregation/minimum_parameters.py", "    >>> MinimumParameters(clients=10, survivors=8).check(SessionParameters(Mode.SEMI_HONEST, bytes(32), bytes(32), 5, 4, 3, 5, 16, 20,\n    ...                                             DistributedNoise(Fraction(10), 4), bytes(32), bytes(32)))\n",
     "    >>> noise = DistributedNoise(Fraction(10), 4)\n    >>> few = SessionParameters(Mode.SEMI_HONEST, bytes(32), bytes(32), 5, 4, 3, 5, 16, 20, noise, bytes(32), bytes(32))\n    >>> MinimumParameters(clients=10, survivors=8).check(few)\n"),
    ("src/hazemap/spatial/point_in_polygon.py", '"""`answer`, `polygon`, `whole` and `after` of `PolygonSquares`: O(squares · polygons that overlap there + edges)."""', '"""`answer`, `polygon`, `whole` and `after` of `PolygonSquares`: O(squares · polygons over them + edges)."""'),
]

EDITS += [
    ("tests/test_one_voice.py", 'not in ("FoundBounds", "SelectedCells")', 'not in ("PrivateValueBounds", "PartitionSelection")'),
    ("tests/cli/test_inspect.py", '("kd-tree", "Medians")', '("kd-tree", "MedianSplitScores")'),
    ("tests/cli/test_stats_values_only.py", '"KeptValues" in seen.out', '"PublicLocationValues" in seen.out'),
    ("tests/cli/test_stats_finding.py", '"Presences" in inspected.out', '"CellPresence" in inspected.out'),
    ("tests/encoders/test_cell_values.py", 'match="Measured"', 'match="CellTimeSlots"'),
    ("src/hazemap/encoders/quantile_scores.py", "    'Quantiles'\n", "    'QuantileScores'\n"),
]


def shorter_examples(tree, say):
    """Doctests that call their value encoding `code`."""
    import re
    for f in ("cell_statistics", "private_box_statistics", "two_stage_statistics"):
        p = tree / f"src/hazemap/algorithms/{f}.py"
        text = p.read_text()
        p.write_text(re.sub(r"^ *(?:>>>|\.\.\.) .*$", lambda m: re.sub(r"(?<![.\w])value_encoding(?!=[^=])", "code", m[0]), text, flags=re.M))


FUNCTIONS = [shorter_examples]
EDITS += [("tests/test_loading.py", 'UNUSED = {"wire",', 'UNUSED = {"protocols",')]

EDITS += [
    ("tests/engines/test_group_exact.py", 'f"{__name__}.Pairing"', 'f"{__name__}.PersonCellSums"'),
    ("src/hazemap/engines/memory.py", "counters (Measured), with", "counters (CellTimeSlots), with"),
    ("src/hazemap/algorithms/two_stage_statistics.py", "themselves (CellValues)", "themselves (CellStatistics)"),
    ("src/hazemap/protocols/secure_aggregation/client_state.py", "<Acquaintance {", "<KnownPeer {"),
    ("src/hazemap/device/encrypted_store.py", 'f"Store({', 'f"EncryptedStore({'),
    ("tests/encoders/test_public_location_values.py", 'match="KeptPairs"', 'match="person_cell_values"'),
    ("tests/device/test_consent_policy.py", "judge cells of type Valued", "judge cells of type RowsWithValues"),
]
