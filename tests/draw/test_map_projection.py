import numpy as np
import pytest

from hazemap.draw.map_projection import ground, latitude, longitude, sheet


@pytest.mark.parametrize(("lon", "lat"), [(0, 0), (-74.3, 40.7), (179, -85), (10, 60)])
def test_the_sheet_is_web_mercator_as_proj_has_it(lon: float, lat: float):
    from pyproj import Transformer

    expected = Transformer.from_crs("OGC:CRS84", "EPSG:3857", always_xy=True).transform(lon, lat)
    x, y = sheet(np.array([float(lon)]), np.array([float(lat)]))
    assert np.allclose([x[0], y[0]], expected, atol=1e-6)
    assert (longitude(x[0]), latitude(y[0])) == pytest.approx((lon, lat), abs=1e-9)


@pytest.mark.parametrize("lat", [0, 40, 60, -33.9, 80])
def test_a_metre_on_the_sheet_is_as_long_as_the_geodesic_says(lat: float):
    from pyproj import Geod

    x, _ = sheet(np.array([10.0, 10.001]), np.array([float(lat)] * 2))
    along = Geod(ellps="WGS84").inv(10, lat, 10.001, lat)[2]
    assert (x[1] - x[0]) * ground(lat) == pytest.approx(along, rel=1e-6)
