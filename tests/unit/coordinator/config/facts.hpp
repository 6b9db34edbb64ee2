// Rows of the tab-separated facts under tests/golden, by column name. For tests alone.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace kanal::coordinator {

inline std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::stringstream stream(line);
  for (std::string cell; std::getline(stream, cell, '\t');) cells.push_back(cell);
  return cells;
}

inline std::vector<std::map<std::string, std::string>> read_facts(const std::string& file) {
  std::ifstream stream(std::string(KANAL_GOLDEN_DIR) + "/kafka-4.4/" + file);
  EXPECT_TRUE(stream) << file;
  std::vector<std::map<std::string, std::string>> rows;
  std::string line;
  std::getline(stream, line);
  const std::vector<std::string> names = cells_of(line);
  while (std::getline(stream, line)) {
    std::vector<std::string> cells = cells_of(line);
    cells.resize(names.size());
    auto& row = rows.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = cells[i];
  }
  return rows;
}

}  // namespace kanal::coordinator
