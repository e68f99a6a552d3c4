"""Judges of answers of a letter or a few words.

choice       the letter of a multiple-choice answer, as in ARC and HellaSwag
qa           normalised exact match and F1 against several answers, as in NaturalQuestions
  qa_values  dates, amounts, lists and abbreviations in other words
"""
