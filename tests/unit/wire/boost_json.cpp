// Boost.JSON, compiled here once: a test dependency only.
#include <boost/json/src.hpp>
