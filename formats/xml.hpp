// XML by pugixml, behind one gate: documents with entity declarations, deep nesting or the wrong
// root are refused, and messages name the line.
#pragma once

#include <pugixml.hpp>

#include "formats/source.hpp"

namespace attnsim::formats {

class xml_file {
 public:
  /// Throws input_error unless the text is one well-formed element `root`.
  xml_file(const source&, std::string_view root);

  pugi::xml_node root() const { return document_.document_element(); }
  std::size_t line_of(pugi::xml_node) const;

  /// "NAME:LINE: <element> key: 'VALUE': EXPECTED", or "missing" where there is no such attribute.
  [[noreturn]] void fail(pugi::xml_node, const char* key, std::string_view expected) const;
  [[noreturn]] void fail(pugi::xml_node, const std::string& message) const;

  /// Of an attribute that must exist.
  std::string text(pugi::xml_node, const char* key) const;
  int integer(pugi::xml_node, const char* key, int least, int most) const;
  double number(pugi::xml_node, const char* key, double least, double most) const;

 private:
  source from_;
  pugi::xml_document document_;
};

/// The name of the first element, without reading the rest; empty: no XML.
std::string_view xml_root_name(std::string_view text);

}  // namespace attnsim::formats
