// Mesh files as programs write them: a table of oddities, each with the triangles or the words of the error.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <cstring>

#include "../../../runtime/geometry/files/mesh_formats.h"

namespace weft {
namespace {

using mesh_formats::Format;

struct Oddity {
  const char* name;
  std::string content;
  std::string expected;  ///< "points: indices", or words of the error
};

/// The result of reading a file: "3: 0 1 2", or the words of the refusal.
std::string outcome(Format format, const std::string& content) {
  try {
    const MeshData mesh = mesh_formats::read_mesh(format, content);
    return fmt::format("{}: {}", mesh.points.size(), fmt::join(mesh.indices, " "));
  } catch (const mesh_formats::NoMesh& e) {
    return e.what();
  }
}
void expect_outcomes(Format format, const std::vector<Oddity>& table) {
  for (const Oddity& o : table) {
    const std::string found = outcome(format, o.content);
    const bool is_mesh = o.expected[0] >= '0' && o.expected[0] <= '9' && o.expected.find(": ") != std::string::npos;
    EXPECT_TRUE(is_mesh ? found == o.expected : found.find(o.expected) != std::string::npos)
        << o.name << "\nexpected: " << o.expected << "\nfound:    " << found;
  }
}

std::string with_ends(std::string text, const std::string& end) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != text.npos; at += end.size()) text.replace(at, 1, end);
  return text;
}

const std::string kThree = "v 0 0 0\nv 1 0 0\nv 0 1 0\n";
const std::string kObj = kThree + "f 1 2 3\n";

TEST(MeshOddities, of_obj_are_read_as_elsewhere_or_refused_by_line) {
  expect_outcomes(
      Format::obj,
      {
          {"slashes without numbers", kThree + "f 1/ 2/ 3/\n", "3: 0 1 2"},
          {"two slashes without numbers", kThree + "f 1// 2// 3//\n", "3: 0 1 2"},
          {"texture and normal 0", kThree + "f 1/0/0 2/0/0 3/0/0\n", "3: 0 1 2"},
          {"normals that are not there", kThree + "f 1//9 2//9 3//9\n", "3: 0 1 2"},
          {"signs", kThree + "f +1 -2 +3\n", "3: 0 1 2"},
          {"a library's name that ends in a backslash", "mtllib C:\\a\\\n" + kObj, "3: 0 1 2"},
          {"a material's name that ends in a backslash", kThree + "usemtl a\\\nf 1 2 3\n", "3: 0 1 2"},
          {"a group's name that ends in a backslash", kThree + "g a \\\nf 1 2 3\n", "3: 0 1 2"},
          {"an object's name of a backslash", "o \\\n" + kObj, "3: 0 1 2"},
          {"a comment that ends in a backslash", "# C:\\\n" + kObj, "3: 0 1 2"},
          {"a line of a backslash", "\\\n" + kObj, "3: 0 1 2"},
          {"a face that goes on", kThree + "f 1 \\\n2 \\\n3", "3: 0 1 2"},
          {"blanks behind the backslash", kThree + "f 1 2 \\ \t\n3\n", "3: 0 1 2"},
          {"a backslash behind the word", "v\\\n0 0 0\nv 1 0 0\nv 0 1 0\nf\\\n1 2 3\n", "3: 0 1 2"},
          {"a backslash at the end of the file", kThree + "f 1 2 3 \\", "3: 0 1 2"},
          {"a comment ends what goes on", kThree + "f 1 \\\n2 3 # four: \\\nv 4 4 4\n", "4: 0 1 2"},
          {"ends of lines of CR", with_ends(kObj, "\r"), "3: 0 1 2"},
          {"ends of lines of CR LF", with_ends(kObj, "\r\n"), "3: 0 1 2"},
          {"goes on, with CR", with_ends(kThree + "f 1 2 \\\n3\n", "\r"), "3: 0 1 2"},
          {"empty lines", with_ends(kObj, "\n\n\r\n"), "3: 0 1 2"},
          {"no end of the last line", kThree + "f 1 2 3", "3: 0 1 2"},
          {"tabs", "v\t0\t0\t0\n\tv 1 0 0\nv 0 1 0 \t\nf\t1\t2\t3\n", "3: 0 1 2"},
          {"weights and colours", "v 0 0 0 1\nv 1 0 0 0.5 0.5 0.5\nv 0 1 0 1 1 1 1\nf 1 2 3\n", "3: 0 1 2"},
          {"colours that are no numbers", "v 0 0 0 nan 1.#IND x\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "3: 0 1 2"},
          {"normals that are no numbers", kThree + "vn 1.#IND nan 0\nvt\nvn\nf 1 2 3\n", "3: 0 1 2"},
          {"the old word for a face", kThree + "fo 1 2 3\n", "3: 0 1 2"},
          {"faces before their points", "f 1 2 3\n" + kThree, "3: 0 1 2"},
          {"a face of two corners", kObj + "f 1 2\n", "3: 0 1 2"},
          {"faces of one and of none", kThree + "f 3\nf\nf 1 2 3\n", "3: 0 1 2"},
          {"points and lines", kThree + "p 1\nl 1 2 3\nf 1 2 3\n", "3: 0 1 2"},
          {"zeros behind the text", kObj + std::string(9, '\0'), "3: 0 1 2"},
          {"a triangle with a corner twice", kThree + "f 1 1 2\n", "3: 0 0 1"},
          {"a square", "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n", "4: 0 1 2 0 2 3"},
          {"one whose last corner is reflex", "v 1 2 0\nv 2 5 0\nv 3 0 0\nv 2 2 0\nf 1 2 3 4\n", "4: 1 2 3 0 1 3"},
          {"a corner twice in a row", kThree + "f 1 2 2 3\n", "3: 0 1 1 0 1 2"},
          {"more triangles around a polygon", "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3\nf 1 2 3 4\nf 3 4 1\n",
           "4: 0 1 2 0 1 2 0 2 3 2 3 0"},

          {"no faces", kThree, "the file has no triangles"},
          {"only lines", kThree + "f 1 2\nl 1 2\n", "the file has no triangles"},
          {"UTF-16", std::string("\xff\xfev\0 \0", 6), "the text is in UTF-16"},
          {"commas", "v 0 0 0\nv 1,5 0 0\n", "line 2 is not a vertex with three numbers"},
          {"no number of a C library", "# x\rv 1.#IND 0 0\r", "line 2 is not a vertex with three numbers"},
          {"two numbers", kThree + "v 1 2\n", "line 4 is not a vertex with three numbers"},
          {"not finite", kThree + "v nan 0 0\nf 1 2 3\n", "the coordinates of point 3 are not finite"},
          {"only textures", kThree + "f /1 /2 /3\n", "line 4: \"\" in a face is no number of a vertex"},
          {"halves", kThree + "f 1 2 3.5\n", "line 4: \"3.5\" in a face is no number of a vertex"},
          {"a name in a face", kThree + "\nf 1 2 c\n", "line 5: \"c\" in a face is no number of a vertex"},
          {"a large number", kThree + "f 1 2 99999999999999999999\n", "line 4: \"99999999999999999999\" in a face"},
          {"beyond 32 bits", kThree + "f 1 2 4294967297\n", "line 4: a face refers to vertex 4294967297 of 3"},
          {"in a line that goes on", kThree + "f 1 \\\n2 \\\n4\n", "line 4: a face refers to vertex 4 of 3"},
          {"behind lines that went on", kThree + "f 1 \\\r\n2 \\\r\n3\r\nf 1 2 0\n",
           "line 7: a face refers to vertex 0"},
          {"no text at all", "", "the file is empty"},
      });
}

TEST(MeshOddities, of_obj_name_the_polygon_that_crosses_itself) {
  std::string text;
  for (int k = 0; k < 400; ++k) text += fmt::format("v {} {} 0\n", k * 7919 % 400, k * k * 31 % 400);
  text += "f";
  for (int k = 1; k <= 400; ++k) text += fmt::format(" {}", k);
  expect_outcomes(Format::obj, {{"400 corners", text, "line 401 is a polygon of 400 corners that crosses itself"}});
}

template <class T>
std::string bytes_of(T x, bool big_endian) {
  std::string bytes(sizeof x, 0);
  std::memcpy(bytes.data(), &x, sizeof x);
  return big_endian ? std::string(bytes.rbegin(), bytes.rend()) : bytes;
}
const std::string kPoint = "property float x\nproperty float y\nproperty float z\n";
std::string ply_header(const std::string& format, int points, const std::string& rest) {
  return "ply\nformat " + format + " 1.0\nelement vertex " + std::to_string(points) + "\n" + kPoint + rest +
         "end_header\n";
}
const std::string kFaces = "element face 1\nproperty list uchar int vertex_indices\n";
const std::string kStrips = "element tristrips 1\nproperty list int int vertex_indices\n";
const std::string kCorners = "0 0 0\n1 0 0\n0 1 0\n";
const std::string kFive = kCorners + "1 1 0\n2 2 0\n";

TEST(MeshOddities, of_ply_are_read_as_elsewhere_or_refused_by_reason) {
  const std::string header = ply_header("ascii", 3, kFaces), whole = header + kCorners + "3 0 1 2\n";
  const std::string strips = ply_header("ascii", 5, kStrips) + kFive;
  auto skipped = [](const std::string& word) {
    return "ply\nformat ascii 1.0\nelement vertex 3\nproperty float quality\n" + kPoint + kFaces +
           "property double flatness\nend_header\n" + word + " 0 0 0\n1 1 0 0\n1 0 1 0\n3 0 1 2 " + word + "\n";
  };
  expect_outcomes(
      Format::ply,
      {
          {"a strip", strips + "5 0 1 2 3 4\n", "5: 0 1 2 2 1 3 2 3 4"},
          {"strips that -1 ends", strips + "9 0 1 2 3 -1 1 3 2 -1\n", "5: 0 1 2 2 1 3 1 3 2"},
          {"strips without a last -1", strips + "8 0 1 2 -1 -1 4 3 2\n", "5: 0 1 2 4 3 2"},
          {"a strip that leads elsewhere", strips + "7 0 1 2 2 3 3 4\n", "5: 0 1 2"},
          {"strips shorter than a triangle", strips + "8 0 1 -1 2 -1 0 1 2\n", "5: 0 1 2"},
          {"several rows of strips",
           ply_header("ascii", 5, "element tristrips 2\nproperty list int int vertex_index\n") + kFive +
               "3 0 1 2\n4 1 2 3 4\n",
           "5: 0 1 2 1 2 3 3 2 4"},
          {"faces and strips", ply_header("ascii", 5, kFaces + kStrips) + kFive + "3 0 1 2\n4 1 3 2 4\n",
           "5: 0 1 2 1 3 2 2 3 4"},
          {"ends of lines of CR", with_ends(whole, "\r"), "3: 0 1 2"},
          {"ends of lines of CR LF", with_ends(whole, "\r\n"), "3: 0 1 2"},
          {"numbers in one line", with_ends(header, "\r") + "0 0 0 1 0 0 0 1 0 3 0 1 2", "3: 0 1 2"},
          {"1.#IND in what is skipped", skipped("1.#IND"), "3: 0 1 2"},
          {"-1.#QNAN in what is skipped", skipped("-1.#QNAN"), "3: 0 1 2"},
          {"nan in what is skipped", skipped("nan"), "3: 0 1 2"},
          {"-nan(ind) in what is skipped", skipped("-nan(ind)"), "3: 0 1 2"},
          {"inf in what is skipped", skipped("-inf"), "3: 0 1 2"},
          {"a face of two corners among others",
           ply_header("ascii", 3, "element face 4\nproperty list uchar int vertex_indices\n") + kCorners +
               "2 0 1\n3 0 1 2\n0\n1 2\n",
           "3: 0 1 2"},
          {"one whose last corner is reflex",
           ply_header("ascii", 4, kFaces) + "1 2 0\n2 5 0\n3 0 0\n2 2 0\n4 0 1 2 3\n", "4: 1 2 3 0 1 3"},
          {"faces before their points",
           "ply\nformat ascii 1.0\n" + kFaces + "element vertex 3\n" + kPoint + "end_header\n3 0 1 2\n" + kCorners,
           "3: 0 1 2"},
          {"indices as reals", header + kCorners + "3.0 0.0 1e0 2\n", "3: 0 1 2"},
          {"comments with the words of a header",
           "ply\ncomment format binary\nformat ascii 1.0\nobj_info element vertex 9\n\nelement vertex 3\n" + kPoint +
               kFaces + "  end_header  \n" + kCorners + "3 0 1 2\n",
           "3: 0 1 2"},
          {"more rows than the header says", whole + "3 0 1 2\n", "3: 0 1 2"},
          {"an element without properties",
           ply_header("ascii", 3, kFaces + "element nothing 5\n") + kCorners + "3 0 1 2", "3: 0 1 2"},

          {"a strip beyond the points", strips + "3 0 1 5\n", "a face refers to vertex 5 of 5"},
          {"a strip of -2", strips + "3 0 -2 1\n", "tristrips 0 refers to vertex -2"},
          {"a strip that ends early", strips + "5 0 1 2\n", "it ends early, at tristrips 0 of 1"},
          {"-1 in a face", header + kCorners + "3 0 1 -1\n", "face 0 refers to vertex -1"},
          {"1.#IND for a coordinate", header + "0 0 0\n1 1.#IND 0\n", "line 11: \"1.#IND\" in vertex 1 is no number"},
          {"the same with CR", with_ends(header + "0 0 0\n1 1.#IND 0\n", "\r"), "line 11: \"1.#IND\" in vertex 1"},
          {"nan for a coordinate", header + "0 0 0\n1 nan 0\n0 1 0\n3 0 1 2\n", "of point 1 are not finite"},
          {"nan for a length", header + kCorners + "nan 0 1 2\n", "a list of face 0 has a length of nan"},
          {"only faces of two corners", header + kCorners + "2 0 1\n", "the file has no triangles"},
          {"points alone", ply_header("ascii", 3, "") + kCorners, "the file has no triangles"},
          {"faces of another name",
           ply_header("ascii", 3, "element face 1\nproperty list uchar int corners\n") + kCorners,
           "its header gives face no list \"vertex_indices\""},
          {"a line that is unknown", with_ends("ply\nformat ascii 1.0\nfurther\n", "\r"),
           "line 3: its header has a line of \"further\""},
          {"UTF-16", std::string("\xfe\xff\0p\0l\0y", 8), "the text is in UTF-16"},
      });
}

TEST(MeshOddities, of_ply_in_bytes_may_begin_with_what_looks_like_an_end_of_line) {
  for (const bool big : {false, true})
    for (const char* end : {"\n", "\r\n", "\r"}) {
      // The first byte of the table is the 10 of "LF" or the 13 of "CR".
      for (const char first : {'\n', '\r', ' '}) {
        std::string content = with_ends(
            ply_header(big ? "binary_big_endian" : "binary_little_endian", 3,
                       "property uchar first\nelement tristrips 1\nproperty list uchar uint vertex_indices\n"),
            end);
        content.replace(content.find("property float x"), 0, with_ends("property uchar zero\n", end));
        for (int k = 0; k < 3; ++k) {
          content += k == 0 ? first : char(k);
          for (float x : {float(k == 1), float(k == 2), 0.f}) content += bytes_of(x, big);
          content += char(7);
        }
        content += char(5);
        for (std::uint32_t index : {0u, 1u, 2u, ~0u, 1u}) content += bytes_of(index, big);
        EXPECT_EQ(outcome(Format::ply, content), "3: 0 1 2") << big << " " << int(first) << " " << end;
      }
    }
}

const std::string kFacet =
    "facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\n";
std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
  return text;
}
/// A binary file with this header.
std::string binary(const std::string& header, std::uint32_t count = 1) {
  std::string content = header;
  content.resize(80, ' ');
  content += bytes_of(count, false) + std::string(12, '\0');
  for (float x : {0.f, 0.f, 0.f, 1.f, 0.f, 0.f, 0.f, 1.f, 0.f}) content += bytes_of(x, false);
  return content + std::string(2, '\0');
}

TEST(MeshOddities, of_stl_are_read_as_elsewhere_or_refused_by_reason) {
  const std::string text = "solid a\n" + kFacet + "endsolid a\n";
  expect_outcomes(
      Format::stl,
      {
          {"upper case", upper(text), "3: 0 1 2"},
          {"some upper case", "Solid a\nFacet Normal 0 0 1\nOuter Loop\n" + text.substr(38), "3: 0 1 2"},
          {"ends of lines of CR", with_ends(text, "\r"), "3: 0 1 2"},
          {"ends of lines of CR LF", with_ends(text, "\r\n"), "3: 0 1 2"},
          {"one line", with_ends(text, " "), "3: 0 1 2"},
          {"one line in upper case", upper(with_ends(text, " ")), "3: 0 1 2"},
          {"one line without a name", with_ends("solid\n" + kFacet + "endsolid\n", " "), "3: 0 1 2"},
          {"two solids in one line", with_ends(text + "solid b\n" + kFacet + "endsolid b\n", " "), "3: 0 1 2 0 1 2"},
          {"two solids", text + text, "3: 0 1 2 0 1 2"},
          {"no name", "solid\n" + kFacet + "endsolid", "3: 0 1 2"},
          {"a name of the format's words", "solid vertex loop facet\n" + kFacet + "endsolid vertex endloop\n",
           "3: 0 1 2"},
          {"normals that are no numbers",
           "solid\nfacet normal 1.#IND nan -nan(ind)\n" + kFacet.substr(kFacet.find("outer")) + "endsolid\n",
           "3: 0 1 2"},
          {"blanks before the first word", "\n  " + text, "3: 0 1 2"},
          {"in bytes", binary("made by weft"), "3: 0 1 2"},
          {"in bytes, with \"solid\" before it", binary("solid a"), "3: 0 1 2"},
          {"in bytes, with \"solid\" and zeros", binary(std::string("solid\0\0\0facet", 13)), "3: 0 1 2"},
          {"in bytes, with \"SOLID\" and a byte more", binary("SOLID a") + '\n', "3: 0 1 2"},
          {"in bytes, with \"solid\", filled up with zeros", binary("solid a") + std::string(400, '\0'), "3: 0 1 2"},

          {"in bytes, with \"solid\", cut off", binary("solid a", 2), "2 triangles take 184 bytes, it has 134"},
          {"in bytes, with more than it says", binary("solid a", 0), "0 triangles take 84 bytes, it has 134"},
          {"upper case, cut off", upper("solid a\n" + kFacet), "it ends early, after 1 triangles"},
          {"one line, cut off", with_ends("solid a\n" + kFacet, " "), "it ends early, after 1 triangles"},
          {"two solids in one line, cut off", with_ends(text + "solid b\n" + kFacet, " "), "it ends early, after 2"},
          {"a loop that is not closed",
           "solid\nloop\nvertex 0 0 0\nvertex 1 0 0\nloop\nvertex 0 1 0\nendloop\nendsolid",
           "line 5: triangle 0 has 2 vertices"},
          {"two numbers", with_ends("solid a\nfacet\nouter loop\nvertex 0 0\nvertex 1 0 0\n", "\r"),
           "line 5: triangle 0 has a vertex without three numbers"},
          {"a quadrilateral",
           "solid\nloop\nvertex 0 0 0\nvertex 1 0 0\nvertex 1 1 0\nvertex 0 1 0\nendloop\nendsolid\n",
           "line 6: triangle 0 has more than three vertices"},
          {"neither text nor whole", "facet normal 0 0 1", "fewer than the header of an STL file"},
      });
}

}  // namespace
}  // namespace weft
