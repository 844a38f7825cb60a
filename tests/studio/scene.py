"""A studio in this process, and a browser of its own page."""

import csv
from pathlib import Path

import numpy as np
from starlette.testclient import TestClient

from hazemap.federated.service.served_address import ServedAddress
from hazemap.privacy.budget import PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.studio.request_guard import Sessions
from hazemap.studio.running_releases import RunningReleases
from hazemap.studio.stewards import ALONE, Stewards
from hazemap.studio.studio_process import AppFile, Studio

PAGE = {
    "index.html": AppFile(b"<!doctype html><title>studio</title>", "text/html; charset=utf-8"),
    "app.js": AppFile(b"", "text/javascript; charset=utf-8"),
}
HERE = "http://127.0.0.1:8475"
BOX = "13.2,52.4,13.6,52.6"


def write_table(path, people=300, header=("user", "lon", "lat")):
    """Rows of people around one place, the same every time."""
    rng = np.random.default_rng(5)
    spots = rng.normal((13.4, 52.5), 0.02, (people, 2))
    with Path(path).open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(header)
        rows.writerows((i, f"{lon:.6f}", f"{lat:.6f}") for i, (lon, lat) in enumerate(spots))


class Browser:
    """The studio's own page in a browser: its cookies, its key, the headers that a browser sets."""

    def __init__(self, scene):
        self.client = TestClient(scene.application, base_url=HERE, raise_server_exceptions=True)
        self.key = ""

    def headers(self, **more):
        own = {"origin": HERE, "sec-fetch-site": "same-origin", "x-hazemap-key": self.key}
        return {name: value for name, value in {**own, **more}.items() if value is not None}

    def sign_in(self, **secret):
        found = self.client.post("/v1/session", json=secret, headers=self.headers())
        if found.status_code == 201:
            self.key = found.json()["key"]
        return found

    def post(self, path, data=None, **headers):
        return self.client.post(path, json=data or {}, headers=self.headers(**headers))

    def get(self, path, **headers):
        return self.client.get(path, headers=self.headers(**headers))


class Scene:
    """A folder with a table, a ledger, and a studio over both. Runs are made at once, unless they are to `wait`."""

    def __init__(self, folder, cap="1", stewards=None, wait=False, clock=None, **address):
        self.root, self.waiting = Path(folder) / "data", []
        self.root.mkdir(exist_ok=True)
        if not (self.root / "visits.csv").exists():
            write_table(self.root / "visits.csv")
        self.book = Ledger(Path(folder) / "ledger.sqlite")
        if cap:
            self.book.cap("visits", PureDP(cap))
        self.stewards = stewards or Stewards.alone(self.root, self.book.path)
        self.sessions = Sessions(*([clock] if clock else []))
        runs = RunningReleases(self.waiting.append if wait else lambda work: work())
        self.studio = Studio(self.stewards, ServedAddress(**{"host": "127.0.0.1", "port": 8475, **address}))
        self.application = self.studio.application(self.sessions, runs, PAGE)

    def browser(self):
        """One that is signed in."""
        new = Browser(self)
        assert new.sign_in(link=self.sessions.link(ALONE)).status_code == 201
        return new


def order(**more):
    """A release of the table."""
    return {
        "source": "visits.csv",
        "epsilon": "0.6",
        "box": BOX,
        "cells": "quadtree:6",
        "output": "map.parquet",
        **more,
    }


def reviewed(browser, **more):
    """An order, and the key to carry it out."""
    found = browser.post("/v1/review", order(**more))
    assert found.status_code == 200, found.text
    return {"order": order(**more), "key": found.json()["key"]}
