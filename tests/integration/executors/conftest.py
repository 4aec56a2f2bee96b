from tests.clouds.places import host as host
from tests.clouds.places import store as store
